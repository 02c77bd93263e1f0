"""The W&B workspace of this project: which of the names in docs/wandb.md stand beside each other."""

from typing import Any

import wandb_workspaces.reports.v2 as wr
import wandb_workspaces.workspaces as ws

from launch.schema.workspace import Dashboard

VERDICT = ["usage/verdict", "usage/decided_by", "chosen/step", "chosen/val_bound", "usage/iwae_100"]
ANALYSIS = "Clusters, coupling, changes"
LEVELS = ("z_omega", "z_alpha_0", "z_alpha_1")  # those that every team of two or more has
COMPARED = ("value", "minus_random_encoder", "minus_control")


def workspace_of(cfg: Dashboard, entity: str) -> ws.Workspace:
    """The workspace as an object; nothing is sent anywhere before its `save`."""
    return ws.Workspace(
        entity=entity,
        project=cfg.project,
        name=cfg.title,
        sections=[_training(), _use(), _probes(cfg.labels), _analysis(), _figures(), _tables()],
        settings=ws.WorkspaceSettings(x_axis="step"),
        runset_settings=ws.RunsetSettings(pinned_columns=[f"summary:{name}" for name in VERDICT]),
    )


def _training() -> ws.Section:
    plots: dict[str, list[Any]] = {
        "Bound, training and validation (nats an episode)": ["train_bound", "val_bound"],
        "Data term (nats an episode)": ["recon"],
        "KL by level (nats an episode)": ["kl_omega", "kl_alpha"],
        "Active units by level": ["active_omega", "active_alpha"],
        "β by level": ["beta_omega", "beta_alpha"],
    }
    lines: list[Any] = [wr.LinePlot(title=title, x="step", y=names, title_x="step") for title, names in plots.items()]
    return ws.Section(name="Training", panels=lines, is_open=True)


def _use() -> ws.Section:
    bars: dict[str, list[Any]] = {
        "Use of z_ω on test episodes (nats an episode)": ["usage/kl_omega", "usage/mi_omega", "usage/prior_gain"],
        "Action NLL: own latents, another episode's, none": [
            "usage/nll",
            "usage/nll_shuffled",
            "usage/nll_without_latents",
        ],
        "Active units at the chosen step": ["usage/active_omega", "usage/active_alpha"],
    }
    return ws.Section(name="Are the latents used?", panels=_bars(bars), is_open=True)


def _probes(labels: list[str]) -> ws.Section:
    bars = {f"Linear probe of z_ω: {name}": [f"probe/{label}/{name}" for label in labels] for name in COMPARED}
    return ws.Section(name="Probes", panels=_bars(bars), is_open=True)


def _analysis() -> ws.Section:
    pair = f"coupling/{LEVELS[1]}/{LEVELS[2]}"
    bars: dict[str, list[Any]] = {
        "Clusters by level (Gaussian mixture)": [f"clusters/{level}/n_clusters" for level in LEVELS],
        "The same clusters where groups are redrawn (adjusted Rand)": [
            f"clusters/{level}/bootstrap" for level in LEVELS
        ],
        "Trajectories within clusters, over between": [f"clusters/{level}/euclidean" for level in LEVELS],
        "Coupling of the first two agents (NMI), and where groups are permuted": [f"{pair}/nmi", f"{pair}/null_mean"],
        "Share of groups whose latent changes": [f"changes/{level}/share" for level in LEVELS],
    }
    return ws.Section(name=ANALYSIS, panels=[*_bars(bars), *_media(("clusters_z_omega", "coupling", "changes"))])


def _figures() -> ws.Section:
    return ws.Section(name="Figures", panels=_media(("learning", "training", "probes", "latents")))


def _tables() -> ws.Section:
    return ws.Section(name="Tables", panels=[wr.WeavePanelSummaryTable(table_name="probes")])


def _media(names: tuple[str, ...]) -> list[Any]:
    return [wr.MediaBrowser(title=name, media_keys=[f"figures/{name}"]) for name in names]


def _bars(plots: dict[str, list[Any]]) -> list[Any]:
    return [wr.BarPlot(title=title, metrics=names) for title, names in plots.items()]
