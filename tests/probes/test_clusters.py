"""The whole of it on planted policies: the right clusters, whatever the order, and words for what cannot be done."""

import numpy as np
import pandas as pd
import pytest

from data_gen.trajectory import InputError, Labels, RowIndex, take
from probes.clusters.clusters import TABLES, confusion
from probes.clusters.levels import COLLAPSED, Deviations
from probes.clusters.records import Clustering
from probes.features import Encoded
from tests.probes.oracles_clusters import brute_adjusted_rand
from tests.probes.planted_clusters import planted, tables

LEVELS = ["z_omega", "z_omega_last", "z_alpha_0", "z_alpha_1"]


@pytest.fixture(scope="module")
def found():
    return tables(planted(n_encoders=2))


def of(table: pd.DataFrame, **values) -> pd.DataFrame:
    for name, value in values.items():
        table = pd.DataFrame(table[table[name] == value])
    return table


def reordered(data: dict, order: np.ndarray) -> dict:
    labels = data["labels"]
    return {
        "policy": data["policy"][order],
        "encoded": data["encoded"].take(order),
        "deviations": Deviations(*(part[:, order] for part in data["deviations"])),
        "batch": take(data["batch"], order.astype(np.int32)),
        "features": data["features"],
        "rows": RowIndex(*(field[order] for field in data["rows"])),
        "split": data["split"][order],
        "labels": Labels({name: value[order] for name, value in labels.values.items()}, labels.specs),
    }


@pytest.mark.parametrize(("k", "seed"), [(2, 1), (3, 2), (5, 3)])
def test_clusters_of_known_policies_are_the_policies(k, seed):
    data = planted(k, seed)
    ids = tables(data, bootstrap=0, pairs=10).ids
    last = data["rows"].checkpoint == 1
    for method in ("mixture", "hdbscan"):
        assert brute_adjusted_rand(ids[f"z_omega:{method}"], data["policy"]) >= 0.9
        assert brute_adjusted_rand(ids.loc[last, f"z_omega_last:{method}"].to_numpy(), data["policy"][last]) >= 0.9
        assert brute_adjusted_rand(ids[f"z_alpha_0:{method}"], data["policy"] == 0) >= 0.9
        assert (ids.loc[~last, f"z_omega_last:{method}"] == -2).all()
        assert (ids[f"z_alpha_1:{method}"] == 0).all()


def test_every_table_has_its_columns_and_every_level(found):
    for name, columns in TABLES.items():
        assert list(getattr(found, name).columns) == ["level", *columns.split()]
    assert found.summary["level"].drop_duplicates().tolist() == LEVELS
    alone = of(found.summary, level="z_alpha_1")
    assert alone["note"].tolist() == [COLLAPSED] * 2 and alone["n_clusters"].tolist() == [1, 1]
    for name in ("bic", "stability", "ictd", "episodes"):
        assert "z_alpha_1" not in set(getattr(found, name)["level"])
    mixture = of(found.summary, level="z_omega", method="mixture").iloc[0]
    assert mixture["n_clusters"] == 3 and mixture["bootstrap"] > 0.9 and mixture["encoders"] > 0.9
    assert mixture["euclidean"] < 0.8 and mixture["n_encoders"] == 2 and not mixture["most_reached"]


def test_the_confusion_table_counts_the_episodes(found):
    data = planted(n_encoders=2)
    ids = found.ids["z_omega:mixture"].to_numpy()
    table = confusion(found.makeup, "z_omega", "mixture", "policy")
    want = [[((ids == k) & (data["policy"] == c)).sum() for c in range(3)] for k in range(3)]
    assert table.to_numpy().tolist() == want
    agreement = of(found.agreement, level="z_omega", method="mixture", label="policy").iloc[0]
    assert agreement["adjusted_rand"] == pytest.approx(brute_adjusted_rand(ids, data["policy"]))
    # a label of an agent is not among those of another
    assert set(of(found.makeup, level="z_alpha_0")["label"]) == {
        "split_group",
        "checkpoint",
        "policy",
        "way_class_0",
    }
    assert {"way_class_0", "way_class_1"} <= set(of(found.makeup, level="z_omega")["label"])
    assert set(of(found.means, level="z_omega")["label"]) == {"way_0", "way_1"}


def test_another_order_of_the_episodes_gives_the_same_tables(found):
    data = planted(n_encoders=2)
    order = np.random.default_rng(5).permutation(len(data["split"]))
    again = tables(reordered(data, order))
    for name in TABLES:
        if name != "episodes":
            pd.testing.assert_frame_equal(getattr(again, name), getattr(found, name))
    pd.testing.assert_frame_equal(again.episodes.assign(row=order[again.episodes["row"]]), found.episodes)
    pd.testing.assert_frame_equal(again.ids, found.ids.iloc[order].reset_index(drop=True))


def test_shown_episodes_are_rows_of_the_data_set(found):
    shown = found.episodes
    for name in ("episode", "group", "checkpoint"):
        assert shown[name].tolist() == found.ids.loc[shown["row"], name].tolist()
    for level in ("z_omega", "z_omega_last"):
        here = of(shown, level=level)
        assert here["cluster"].tolist() == found.ids.loc[here["row"], f"{level}:mixture"].tolist()


def test_clusters_that_are_fitted_on_a_part_are_the_same_on_the_rest():
    data = planted()
    part = tables(data, rows=150, bootstrap=0, pairs=10)
    assert part.summary["n_fitted"].tolist() == [150] * 8 and part.summary["n_episodes"].tolist()[0] == 400
    for method in ("mixture", "hdbscan"):
        assert brute_adjusted_rand(part.ids[f"z_omega:{method}"], data["policy"]) >= 0.9


def test_an_absent_agent_has_no_cluster_and_a_rare_one_none_at_all():
    data = planted()
    mask = data["batch"].mask.copy()
    mask[:7, :, 0] = mask[9:, :, 1] = False
    found = tables(data | {"batch": data["batch"]._replace(mask=mask)}, bootstrap=0, pairs=50)
    assert (found.ids["z_alpha_0:mixture"].to_numpy() == -2).tolist() == [True] * 7 + [False] * 393
    assert (found.ids["z_alpha_1:mixture"] == -2).all()
    assert of(found.summary, level="z_alpha_1")["note"].tolist() == ["not clustered: 9 episode(s), 10 needed"] * 2


def test_a_single_checkpoint_has_no_level_of_its_own_and_a_single_group_no_stability():
    data = planted()
    few = reordered(data, np.flatnonzero((data["rows"].checkpoint == 1) & (data["rows"].group < 6)))
    assert "z_omega_last" not in set(tables(few, bootstrap=0, pairs=10).summary["level"])
    rows = data["rows"]._replace(group=np.zeros_like(data["rows"].group))
    alone = tables(data | {"rows": rows}, pairs=30)
    mixture = of(alone.summary, level="z_omega", method="mixture").iloc[0]
    assert mixture["n_clusters"] == 3 and np.isnan(mixture["bootstrap"])
    assert of(alone.ictd, level="z_omega")["se"].isna().all()


def test_what_cannot_be_clustered_is_refused():
    data = planted()
    with pytest.raises(InputError, match="there are 9 episodes, and 10 are needed"):
        tables(reordered(data, np.arange(9)))
    broken = data["encoded"].z_alpha.copy()
    broken[0, 4, 1, 2] = np.nan
    with pytest.raises(InputError, match="z_alpha is nan at row 4, column 5"):
        tables(data | {"encoded": data["encoded"]._replace(z_alpha=broken)})
    deviations = data["deviations"]._replace(z_omega=data["deviations"].z_omega[:, :50])
    with pytest.raises(InputError, match="the deviation of z_omega has 50 rows"):
        tables(data | {"deviations": deviations})
    labels = data["labels"]._replace(values=data["labels"].values | {"policy": data["policy"][:3]})
    with pytest.raises(InputError, match="label 'policy' has 3 values for 400 episodes"):
        tables(data | {"labels": labels})


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("most", 0, "clusters.most is 0; it must be 1 or more"),
        ("most", 3001, "cannot be more clusters than episodes"),
        ("smallest", 1.0, "it is a share of the episodes"),
        ("steps", 1, "clusters.steps is 1; it must be 2 or more"),
        ("seed", -1, "clusters.seed is -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting, value, words):
    with pytest.raises(InputError, match=words):
        Clustering(**{setting: value})


def test_a_flat_vae_is_compared_with_at_the_joint_level_alone():
    data = planted()
    flat = data["encoded"].z_omega + 0.0
    encoded = Encoded(*data["encoded"][:3], flat_vae=flat)
    found = tables(data | {"encoded": encoded}, bootstrap=0).ictd
    assert of(found, partition="k-means, flat VAE")["level"].drop_duplicates().tolist() == ["z_omega", "z_omega_last"]


@pytest.mark.slow
def test_the_number_of_jobs_changes_nothing(found):
    again = tables(planted(n_encoders=2), jobs=2)
    for name, table in found._asdict().items():
        pd.testing.assert_frame_equal(getattr(again, name), table)
