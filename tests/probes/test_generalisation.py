"""Probes and bound on episodes that nothing was fitted on, with planted truth."""

import numpy as np
import pytest

from data_gen.trajectory import SPLITS
from probes.features import Encoded
from probes.probe import Probe
from probes.table.generalisation import KNOWN, Evidence, bound_records, generalisation_table
from tests.probes.planted import planted_data

CONFIG = Probe(labels=["side", "speed_class"], probes=["linear"], bootstrap=200, permutations=0)


def evidence(seed: int) -> tuple[Evidence, object]:
    data = planted_data(seed, n_seeds=20)
    features = data.pop("features")
    rng = np.random.default_rng(seed)
    bound = rng.normal(size=(len(data["encoded"].z_omega), len(data["split"])))
    return Evidence(**data, bound=bound, latent_free=rng.normal(size=bound.shape[1])), features


def values(table, name: str, label: str) -> float:
    (found,) = table[
        (table.scored_on == name) & (table.label == label) & (table.features.isin(["z_omega", "model"]))
    ].value
    return found


def test_what_the_latent_says_elsewhere_is_told_apart() -> None:
    """In the second set the latents belong to other episodes."""
    known, features = evidence(0)
    mixed = np.random.default_rng(1).permutation(len(known.split))
    other = known._replace(encoded=Encoded(*(part[:, mixed] for part in known.encoded[:3])))
    table = generalisation_table(CONFIG, features, known, {"same": known, "mixed": other})
    for label in ("side", "speed_class"):
        assert values(table, KNOWN, label) == values(table, "same", label) > 0.95
        assert abs(values(table, "mixed", label) - 0.5) < 0.2
    assert not (table.label == "split_group").any()


def test_only_its_test_episodes_count_and_the_known_ones_test_episodes_do_not() -> None:
    known, features = evidence(0)
    other, _ = evidence(1)
    test = known.split == SPLITS.index("test")
    spoilt = known.encoded.z_omega.copy()
    spoilt[:, test] = 0
    table, again = (
        generalisation_table(CONFIG, features, one, {"other": other})
        for one in (known, known._replace(encoded=known.encoded._replace(z_omega=spoilt)))
    )
    first, second = (frame[frame.scored_on == "other"].reset_index(drop=True) for frame in (table, again))
    assert first.equals(second)
    assert values(table, KNOWN, "side") > 0.95 > 0.6 > values(again, KNOWN, "side")
    rows = first[(first.label == "side") & (first.features == "z_omega")]
    assert rows.n_rows.item() == (other.split == SPLITS.index("test")).sum()


def test_quantiles_are_cut_where_the_known_training_groups_are() -> None:
    """Speeds of the other set all lie above the known median, so only one class is left there."""
    known, features = evidence(0)
    fast = {**known.labels.values, "speed": known.labels.values["speed"] + 100}
    other = known._replace(labels=known.labels._replace(values=fast))
    table = generalisation_table(CONFIG, features, known, {"fast": other})
    row = table[(table.scored_on == "fast") & (table.label == "speed_class")]
    assert len(row) == 1 and "not evaluated" in row.note.item()


def test_the_bound_is_a_mean_over_actions_with_an_interval_over_groups() -> None:
    known, _ = evidence(0)
    records = {record["label"]: record for record in bound_records(CONFIG, "here", known)}
    actions = known.batch.mask.sum()
    per_seed = known.bound.sum(1) / actions
    assert records["bound"]["value"] == pytest.approx(per_seed.mean())
    assert records["latent_free"]["value"] == pytest.approx(known.latent_free.sum() / actions)
    assert records["gain"]["value"] == pytest.approx(records["bound"]["value"] - records["latent_free"]["value"])
    groups = np.unique(known.rows.group)
    of_group = [known.latent_free[known.rows.group == group].sum() for group in groups]
    error = np.std(of_group, ddof=1) / actions * np.sqrt(len(groups))
    width = records["latent_free"]["ci_high"] - records["latent_free"]["ci_low"]
    assert width == pytest.approx(2 * 2.09 * error, rel=0.2)  # 2.09: Student's t, 19 degrees of freedom
