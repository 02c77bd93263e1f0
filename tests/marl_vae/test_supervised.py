"""The supervised ceiling on episodes whose style is in the actions, and on labels that are in none."""

import numpy as np
import pytest
from flax import nnx

from data_gen.trajectory import ActionSpec, all_real, to_device
from marl_vae import supervised
from marl_vae.model import Dims, HierarchicalVAE, Model
from marl_vae.normalise import fit_normaliser
from marl_vae.supervised import Question, _chances, _score, supervise
from tests.builders import styled_batch

SIZE = 90
ROWS = {"train": np.arange(50), "validation": np.arange(50, 65), "test": np.arange(65, SIZE)}
ACTION = ActionSpec("continuous", 2)
MODEL, DIMS = Model(joint_width=3, local_width=2, hidden=8, decoder_hidden=8), Dims(agents=3, obs=2, action=ACTION)


def asked(kind: str, values: np.ndarray, n_classes: int, seeds: list[int]) -> np.ndarray:
    batch = styled_batch(0, SIZE)
    scale = fit_normaliser(batch, ACTION, all_real(3, 2, ACTION))
    question = Question(kind, values, n_classes, ROWS["train"], ROWS["validation"])
    return supervise(MODEL, DIMS, scale, batch, question, ROWS["test"], seeds=seeds, report=lambda share: None)


def style() -> np.ndarray:
    """The way that the team goes, as `styled_batch` draws it first."""
    return np.random.default_rng(0).integers(0, 2, SIZE)


@pytest.fixture(autouse=True)
def short(monkeypatch) -> None:
    monkeypatch.setattr(supervised, "ROUNDS", 4)


def test_a_class_that_is_in_the_actions_is_learnt_by_every_seed() -> None:
    found = asked("class", style(), 2, seeds=[0, 5])
    assert found.shape == (2, 25, 2)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)
    assert ((found.argmax(-1) == style()[ROWS["test"]]).mean(1) > 0.95).all()
    assert not np.array_equal(found[0], found[1])


def test_a_number_that_is_in_the_actions_is_learnt_in_its_own_units() -> None:
    values = 100.0 + 7.0 * style()
    (found,) = asked("real", values, 0, seeds=[0])
    assert np.abs(found[:, 0] - values[ROWS["test"]]).mean() < 1.5


@pytest.mark.slow
def test_neither_test_labels_nor_other_rows_matter() -> None:
    """Labels outside training and validation rows are replaced; every answer stays as it was."""
    values, changed = style(), style()
    changed[ROWS["test"]] = 1 - changed[ROWS["test"]]
    np.testing.assert_array_equal(asked("class", values, 2, [3]), asked("class", changed, 2, [3]))


def test_classes_are_drawn_equally_and_only_from_training() -> None:
    values = np.array([0, 0, 0, 1, 2, 2, 1, 0])
    chances = _chances(Question("class", values, 3, np.arange(6), np.array([6, 7])))
    np.testing.assert_allclose(chances, [1 / 9, 1 / 9, 1 / 9, 1 / 3, 1 / 6, 1 / 6, 0, 0], rtol=1e-6)
    chances = _chances(Question("real", values.astype(float), 0, np.arange(6), np.array([6, 7])))
    np.testing.assert_allclose(chances, [1 / 6] * 6 + [0, 0], rtol=1e-6)


def test_the_validation_score_is_balanced_accuracy_or_r2() -> None:
    values = np.array([0.0, 2.0, 0, 0, 0, 1, 1])
    question = Question("class", values.astype(int), 3, np.arange(2), np.arange(2, 7))
    answers = np.eye(3)[[0, 0, 2, 1, 0]]
    assert _score(question, answers) == pytest.approx((2 / 3 + 1 / 2) / 2)
    question = Question("real", values, 0, np.arange(2), np.arange(2, 7))
    guess = np.array([0.0, 1, 0, 1, 2])  # mean 1, deviation 1 over training: answers are in those units
    left, total = ((values[2:] - guess) ** 2).sum(), ((values[2:] - 1) ** 2).sum()
    assert _score(question, guess[:, None] - 1) == pytest.approx(1 - left / total)


def test_team_features_are_the_first_of_all_features() -> None:
    batch = to_device(styled_batch(0, 10))
    scale = fit_normaliser(batch, ACTION, all_real(3, 2, ACTION))
    model = HierarchicalVAE(MODEL, DIMS, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(model.team_features(scale, batch), model.features(scale, batch)[0], rtol=1e-6)
