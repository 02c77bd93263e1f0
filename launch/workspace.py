"""Save this project's W&B workspace online: `python -m launch.workspace entity=my-team project=marl-vae`."""

import wandb

from data_gen.trajectory import InputError
from launch.entry import enter
from launch.schema.workspace import Dashboard


def main(cfg: Dashboard) -> None:
    """Build the workspace and save it as a new view. Raises InputError where W&B or the package is out of reach."""
    try:
        from launch.panels import workspace_of
    except ImportError as error:
        raise InputError(
            f"{error}. Install what this needs: pip install -c constraints.txt -e '.[workspace]'."
        ) from None
    try:
        saved = workspace_of(cfg, cfg.entity or wandb.Api().default_entity or "").save()
    except (wandb.Error, OSError, ValueError) as error:
        raise InputError(
            f"W&B did not take the workspace ({error}). Log in with `wandb login`, and check that {cfg.project} is a "
            f"project of {cfg.entity or 'yours'} with a run."
        ) from error
    print(f"workspace {saved.url}")


if __name__ == "__main__":
    enter("workspace", main)
