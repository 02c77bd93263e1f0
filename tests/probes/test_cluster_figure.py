"""The figure draws the tables it was given, and the sentence says what they hold."""

from typing import cast

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from probes.clusters.clusters import TABLES, ClusterTables
from probes.clusters.figure import REST, cluster_figure, shares_of
from probes.clusters.levels import COLLAPSED
from probes.clusters.summary import cluster_sentences, doubts_of, sentence
from probes.groups import group_word

SHARES = {0: [0.75, 0.25, 0.0], 1: [0.1, 0.2, 0.7]}
BASE = [0.5, 0.25, 0.25]


def makeup(names=("up", "down", "none")) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"level": "z_omega", "method": "mixture", "label": "goal", "cluster": k, "class": name}
            | {"count": round(20 * share), "share": share, "base": base, "lift": share / base}
            for k, shares in SHARES.items()
            for name, share, base in zip(names, shares, BASE, strict=True)
        ]
    )


def given() -> ClusterTables:
    empty = {name: pd.DataFrame(columns=["level", *columns.split()]) for name, columns in TABLES.items()}
    rows = [
        {
            "level": "z_omega",
            "method": method,
            "over": over,
            "n": 5,
            "mean": mean,
            "low": mean - 0.1,
            "high": mean + 0.05,
        }
        for (method, over), mean in {
            ("mixture", "bootstrap"): 0.8,
            ("hdbscan", "bootstrap"): 0.5,
            ("mixture", "encoder seeds"): np.nan,
            ("hdbscan", "encoder seeds"): np.nan,
        }.items()
    ]
    return ClusterTables(**(empty | {"makeup": makeup(), "stability": pd.DataFrame(rows)}), ids=pd.DataFrame())


def test_bars_are_the_shares_and_points_the_stability():
    left, right = (cast(Axes, ax) for ax in cluster_figure(given(), "z_omega", "goal").axes)
    widths = np.array([[bar.get_width() for bar in bars] for bars in left.containers])  # type: ignore[attr-defined]
    np.testing.assert_allclose(widths.T, [*SHARES.values(), BASE])
    starts = np.array([[bar.get_x() for bar in bars] for bars in left.containers])  # type: ignore[attr-defined]
    np.testing.assert_allclose(starts[1], [0.75, 0.1, 0.5])
    assert [text.get_text() for text in left.get_yticklabels()] == ["0 (n=20)", "1 (n=20)", "all (n=40)"]
    drawn = [np.asarray(line.get_xdata(), float).tolist() for line in right.get_lines()]
    assert drawn[:4] == [pytest.approx([0.7, 0.85]), [0.8], pytest.approx([0.4, 0.55]), [0.5]]
    words = [text.get_text() for text in right.texts]
    assert words[:2] == ["Gaussian mixture: not measured", "HDBSCAN: not measured"]


def test_rare_classes_are_one():
    names = tuple("abcdefgh")
    rows = [
        {"cluster": k, "class": name, "share": share, "base": base}
        for k, shares in enumerate(np.random.default_rng(0).dirichlet(np.ones(8), 2))
        for name, share, base in zip(names, shares, [0.2, 0.01, 0.2, 0.2, 0.02, 0.2, 0.1, 0.07], strict=True)
    ]
    found = shares_of(pd.DataFrame(rows))
    assert found.columns.tolist() == ["a", "c", "d", "f", "g", "h", REST]
    assert found.loc["all", REST] == pytest.approx(0.03)
    np.testing.assert_allclose(found.sum(axis=1), 1)


SEED = "training seed"


def row(**changes) -> dict:
    return {
        "level": "z_omega",
        "method": "mixture",
        "n_clusters": 4,
        "noise": 0.0,
        "n_episodes": 768,
        "n_fitted": 768,
        "n_groups": 48,
        "bootstrap": 0.91,
        "encoders": 0.88,
        "n_encoders": 5,
        "euclidean": 0.352,
        "one_seed": 0,
        "most_reached": False,
        "note": "",
    } | changes


def test_the_sentence_of_good_clusters_names_their_numbers():
    assert sentence(row(), SEED) == (
        "z_omega (Gaussian mixture, number by BIC): 4 clusters, from 768 episodes of 48 training seeds; redrawn "
        "training seeds give the same clusters at an adjusted Rand index of 0.91; trajectories of one cluster lie 0.35 "
        "as far apart as those of two. None of the usual doubts apply."
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_groups": 4}, "4 training seeds are few"),
        ({"n_fitted": 300}, "fitted on 300 of the 768 episodes (clusters.rows), and the number of clusters"),
        ({"bootstrap": 0.69}, "the clusters change when training seeds are redrawn"),
        ({"bootstrap": np.nan}, "stability was not measured"),
        ({"encoders": 0.3}, "other encoder seeds find other clusters (0.30)"),
        ({"encoders": np.nan, "n_encoders": 1}, "there is one encoder seed, and another may find other clusters"),
        ({"euclidean": 0.91}, "trajectories of one cluster are hardly more alike than any (above 0.9)"),
        ({"euclidean": np.nan}, "how alike the trajectories of a cluster are was not measured"),
        ({"method": "hdbscan", "noise": 0.6}, "most episodes are in no cluster"),
        ({"one_seed": 2}, "2 of the clusters are one training seed each"),
        ({"most_reached": True}, "BIC is lowest at the most components that were tried"),
    ],
)
def test_each_doubt_is_said_where_it_applies(changes, words):
    assert doubts_of(row(), SEED) == []
    (doubt,) = doubts_of(row(**changes), SEED)
    assert words in doubt and f"Do not trust it far: {doubt}." in sentence(row(**changes), SEED)


def test_groups_of_a_users_data_are_not_called_seeds():
    assert [group_word(meta) for meta in ({"learner": {}}, {"groups": ["a"]}, {})] == [
        "training seed",
        "group",
        "group",
    ]
    said = sentence(row(n_groups=4, bootstrap=0.3, one_seed=2), "group")
    assert "episodes of 4 groups; redrawn groups give" in said and "4 groups are few; the clusters change when" in said
    assert "2 of the clusters are one group each" in said and "seed" not in said


def test_what_has_no_clusters_says_why():
    assert sentence(row(note=COLLAPSED), SEED).startswith("z_omega: collapsed: one cluster.")
    assert sentence(row(note="not clustered: 3 episode(s), 10 needed"), SEED) == (
        "z_omega: not clustered: 3 episode(s), 10 needed."
    )
    one = sentence(row(n_clusters=1, bootstrap=np.nan, euclidean=np.nan), SEED)
    both = [row(note=COLLAPSED), row(note=COLLAPSED, method="hdbscan"), row()]
    assert cluster_sentences(both, SEED) == [sentence(both[0], SEED), sentence(both[2], SEED)]
    unmeasured = sentence(row(bootstrap=np.nan, euclidean=np.nan), SEED)
    assert "48 training seeds. Do not trust it far: stability was not measured; how alike the" in unmeasured
    assert "1 cluster, from" in one and "Rand" not in one and "None of the usual doubts" in one
