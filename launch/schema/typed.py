"""A composed config as typed objects: YAML becomes them once, here, and each checks its own values."""

import importlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf

from data_gen.trajectory import InputError

CONF = Path(__file__).resolve().parent.parent.parent / "conf"


def composed(config: str, overrides: Sequence[str]) -> DictConfig:
    """What `conf/<config>.yaml` and the overrides give, outside of an entry point."""
    importlib.import_module(f"launch.schema.{config}")  # hydra knows it from then on
    GlobalHydra.instance().clear()
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra.compose(config, overrides=list(overrides))


def typed(cfg: DictConfig) -> Any:
    """The config as typed objects. Raises InputError for a key that no schema has (hydra lets `+key=value` add one)."""
    _refuse_unknown(cfg, "")
    return OmegaConf.to_object(cfg)


def _refuse_unknown(cfg: Any, where: str) -> None:
    if not isinstance(cfg, DictConfig) or not is_dataclass(kind := OmegaConf.get_type(cfg)):
        return
    known = [part.name for part in fields(kind)]
    for key in cfg:
        if key not in known:
            raise InputError(f"there is no config key {where + str(key)!r}; here there are {', '.join(known)}.")
        _refuse_unknown(cfg._get_node(key), f"{where}{key}.")
