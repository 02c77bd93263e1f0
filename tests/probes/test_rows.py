"""Rows over encoder seeds, corrected p-values, codelength, flags, and a second table from kept results."""

import numpy as np
import pandas as pd
import pytest

import probes.jobs
from probes.features import Encoded
from probes.probe import Probe
from probes.table.significance import holm
from probes.table.table import probe_table
from tests.probes.planted import GIVEN, QUICK, planted_data, row_of, table_of


def small_data() -> dict:
    """Planted data of 10 training, 4 validation and 6 test seeds."""
    return planted_data(n_seeds=20)


def _encoders(data: dict, n: int, blur: float = 1.0) -> dict:
    """The same arguments with n encoders, each blurred by a noise of its own."""
    rng, one = np.random.default_rng(5), data["encoded"]
    parts = [np.concatenate([part + blur * rng.normal(size=part.shape) for _ in range(n)]) for part in one[:3]]
    return data | {"encoded": Encoded(*(part.astype(np.float32) for part in parts))}


def test_a_value_is_the_mean_over_encoder_seeds_and_what_needs_no_encoder_has_one():
    data, settings = _encoders(small_data(), 3), {"labels": ["mood"], "probes": ["linear"]}
    table = table_of(data, encoders=5, **settings)
    alone = [
        table_of(data | {"encoded": Encoded(*(part[i : i + 1] for part in data["encoded"][:3]))}, **settings)
        for i in range(3)
    ]
    for name in ("z_omega", "z_alpha", "random_encoder"):
        row, own = row_of(table, "mood", name), [row_of(one, "mood", name) for one in alone]
        for column in ("value", "control", "macro_f1", "auroc", "selectivity"):
            assert row[column] == pytest.approx(np.mean([one[column] for one in own])), column
        assert row["n_encoders"] == 3 and "only 3 encoder seeds" in row["note"]
        assert len({one["value"] for one in own}) > 1
    hand = row_of(table, "mood", "hand")
    assert hand["n_encoders"] == 1 and "encoder" not in hand["note"]
    same = ["value", "ci_low", "ci_high", "control", "n_groups"]
    pd.testing.assert_series_equal(hand[same], row_of(alone[0], "mood", "hand")[same], check_names=False)
    spread = row_of(table, "mood")["zw_minus_this"], hand["zw_minus_low"], hand["zw_minus_high"]
    assert np.isnan(spread[0]) and spread[1] < hand["zw_minus_this"] < spread[2]
    assert "one encoder" in row_of(table_of(small_data(), encoders=5, **settings), "mood")["note"]
    assert not alone[0]["note"].str.contains("encoder").any()


def test_p_values_are_corrected_over_the_labels_of_a_row_but_not_the_confounds():
    data = _encoders(small_data(), 1, blur=1.5)
    table = table_of(data, labels=["mood", "side", "speed"], probes=["linear"])
    rows = [row_of(table, label, "hand") for label in ("mood", "side", "speed")]
    p = [row["p_value"] for row in rows]
    assert [row["p_holm"] for row in rows] == pytest.approx(holm(np.array(p)).tolist())
    checkpoint = row_of(table, "checkpoint", "hand")
    assert 0 < checkpoint["p_value"] <= 1 and np.isnan(checkpoint["p_holm"])
    assert np.isnan(row_of(table, "mood")["p_value"]) and np.isnan(row_of(table, "mood")["groups_for_05"])
    assert all(row["groups_for_05"] >= 2 for row in rows)


def test_codelength_is_there_where_it_is_asked_for_and_is_shorter_where_the_label_is_held():
    table = table_of(small_data(), labels=["mood", "speed"], probes=["linear"], online_code=True)
    held, noise = row_of(table, "mood"), row_of(table, "mood", "random_encoder")
    assert held["compression"] > 2 > noise["compression"] > 0.7
    assert held["compression"] == pytest.approx(120 * np.log2(3) / held["mdl_bits"])
    for label in ("speed", "split_group"):
        assert np.isnan(row_of(table, label)["mdl_bits"]) and np.isnan(row_of(table, label)["compression"])
    assert np.isnan(row_of(table_of(small_data(), labels=["mood"], probes=["linear"]), "mood")["mdl_bits"])


def test_flags_say_what_saw_the_test_episodes_and_what_sees_the_whole_episode():
    data = small_data()
    data["encoded"] = data["encoded"]._replace(flat_vae=data["encoded"].z_omega, trained_on_test=True)
    table = table_of(data, labels=["side"], probes=["linear"])
    rows = table[table["label"] == "side"].set_index("features")
    seen = set(rows.index[rows["transductive"]])
    assert seen == {"z_omega", "z_alpha", "z_both", "random_encoder", "flat_vae"}
    assert rows.index[~rows["acausal"]].tolist() == ["majority"]
    assert rows["value"]["flat_vae"] == rows["value"]["z_omega"] and rows["zw_minus_this"]["flat_vae"] == 0
    assert not table_of(small_data(), labels=["side"], probes=["linear"])["transductive"].any()


def test_a_second_table_fits_only_the_label_that_changed(tmp_path, monkeypatch):
    data, settings = small_data(), {"labels": ["side", "mood"], "probes": ["linear"]}

    def run(**more) -> pd.DataFrame:
        return probe_table(Probe(**(QUICK | settings | more)), **data, cache=tmp_path)

    first = run()
    written = []
    monkeypatch.setattr(probes.jobs, "write", lambda path, result: written.append(path))
    pd.testing.assert_frame_equal(run(), first, check_exact=True)
    assert not written
    run(bootstrap=50, jobs=2, efficiency=[2])
    assert not written
    data["labels"].values["mood"][0] = (data["labels"].values["mood"][0] + 1) % 3
    changed = run()
    assert len(written) == len(GIVEN) - 1
    pd.testing.assert_frame_equal(
        changed[changed["label"] != "mood"].drop(columns="p_holm"),
        first[first["label"] != "mood"].drop(columns="p_holm"),
        check_exact=True,
    )
