"""The supervised row with a fake trainer, and what is read as a share of its skill."""

import numpy as np
import pytest

from data_gen.trajectory import InputError
from probes.probe import Probe
from probes.table.ceiling import share_of_ceiling
from probes.table.findings import format_table, sentences
from probes.table.table import probe_table
from tests.probes.oracles_scores import balanced_accuracy, skill
from tests.probes.planted import QUICK, planted_data

CONFIG = Probe(**(QUICK | {"labels": ["mood", "speed"], "probes": ["linear"], "permutations": 0}))


class Fake:
    """Right in a share of rows, and with a noise of its own for each encoder."""

    def __init__(self, right: float, n_encoders: int = 3):
        self.right, self.n_encoders, self.asked = right, n_encoders, []

    def __call__(self, kind, values, n_classes, train, validation, test):
        rng = np.random.default_rng(len(self.asked))
        self.asked.append((kind, n_classes, train, validation, test))
        if kind == "real":
            return values[test][None, :, None] + (1 - self.right) * rng.normal(size=(self.n_encoders, len(test), 1))
        truth = np.eye(n_classes)[values[test]]
        hits = rng.random((self.n_encoders, len(test), 1)) < self.right
        return np.where(hits, 0.8 * truth + 0.2 / n_classes, 1 / n_classes + 0.1 * np.eye(n_classes)[0])


def test_the_supervised_row_is_the_mean_of_its_encoders_and_every_row_is_told_in_its_skill():
    data, fake = planted_data(n_seeds=20), Fake(0.7)
    table = probe_table(CONFIG, **data, ceiling=fake)
    top = table[table["features"] == "supervised"].set_index("label")
    assert top.index.tolist() == ["mood", "speed"] and set(top["probe"]) == {"end_to_end"}
    split, mood = data["split"], data["labels"].values["mood"]
    for kind, n_classes, train, validation, test in fake.asked:
        assert (kind, n_classes) in (("class", 3), ("real", 1))
        for rows, part in ((train, 0), (validation, 1), (test, 2)):
            np.testing.assert_array_equal(rows, np.flatnonzero(split == part))
    test = split == 2
    again = Fake(0.7)("class", mood, 3, None, None, np.flatnonzero(test))
    want = np.mean([balanced_accuracy(mood[test], one.argmax(1)) for one in again])
    assert top.value["mood"] == pytest.approx(want) and top.n_encoders["mood"] == 3
    speed = data["labels"].values["speed"].astype(float)
    assert top.value["speed"] == pytest.approx(1 - 0.3**2 / speed[test].var(), abs=0.03)
    rows = table[table["label"] == "mood"]
    np.testing.assert_allclose(rows["of_ceiling"], (rows["value"] - 1 / 3) / (want - 1 / 3))
    assert table[table["level"] == "confound"]["of_ceiling"].isna().all()
    assert rows[rows["features"] == "supervised"]["of_ceiling"].item() == pytest.approx(1)
    z_omega = rows[(rows["features"] == "z_omega") & (rows["probe"] == "linear")]["value"].item()
    assert top.zw_minus_this["mood"] == pytest.approx(z_omega - want)
    assert top["control"].isna().all() and "negative control not run" in top.note["mood"]
    assert skill(np.ones(2), np.zeros(2), 0.5) < 0


def test_where_the_ceiling_does_not_beat_chance_there_is_no_share():
    table = probe_table(CONFIG, **planted_data(n_seeds=20), ceiling=Fake(0.0))
    assert table[table["label"] == "mood"]["of_ceiling"].isna().all()
    assert share_of_ceiling(0.5, 0.25, 0.75, 0.3) == 0.5
    assert np.isnan(share_of_ceiling(0.5, 0.25, 0.75, 0.25))
    without = probe_table(CONFIG, **planted_data(n_seeds=20))
    assert without["of_ceiling"].isna().all() and "supervised" not in set(without["features"])


def test_a_ceiling_that_is_not_finite_is_refused():
    with pytest.raises(InputError, match="ceiling of 'mood' predicts .* not finite"):
        probe_table(CONFIG, **planted_data(n_seeds=20), ceiling=lambda *_: np.full((1, 72, 3), np.nan))


def test_the_ceiling_stands_in_the_first_block_of_its_label_and_in_words():
    table = probe_table(CONFIG, **planted_data(n_seeds=20), ceiling=Fake(0.7))
    said = {line.split(":")[0]: line for line in sentences(table)}
    assert "of the supervised ceiling's skill above chance" in said["mood (linear)"]
    assert "end_to_end" not in "".join(said)
    assert format_table(table).count("supervised") >= 2
