"""Roll a trained decoder out under other joint latents: `python -m launch.intervene run=runs/coordination`."""

from pathlib import Path

from data_gen.recording.recording import of_episodes
from data_gen.recording.worlds import world_of
from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import seen_rows, select
from launch.data import hold_out_of
from launch.encoders import embeddings_of
from launch.entry import enter
from launch.log import logging_to
from launch.probed import read_probes
from launch.progress import progress
from launch.rollouts import rollouts_of
from launch.rundir import claim, config_of, data_of
from launch.schema.intervene import Intervening
from marl_vae import load
from marl_vae.files import write_text
from probes.interventions.figure import intervention_figure
from probes.interventions.intervention import Latents
from probes.interventions.text import format_interventions
from probes.interventions.used import check_interventions, decodable_and_used, intervene
from probes.report.report import png


def main(cfg: Intervening) -> None:
    """Write interventions.csv, its curves, decodable_and_used.csv and a figure, and print what they say."""
    run = Path(cfg.run)
    config_of(run)
    embedded = embeddings_of(run)[run]
    found = read_dataset(data_of(run))
    rows = seen_rows(found, hold_out_of(run))
    found = select(found._replace(labels=of_episodes(found.labels)), rows)
    latents = Latents(embedded["omega_mean"][rows], embedded["alpha_mean"][rows])
    world = world_of(found.meta, str(data_of(run)))
    table, probe = read_probes(run)
    check_interventions(cfg.intervention, found, latents, table)
    with claim(run, {}, {"intervention": cfg.intervention.seed}), logging_to(cfg.logger, run, run.name):
        with progress("intervene") as tell:
            rollouts = rollouts_of(load(run), world)
            shown = lambda done, total: tell(done / total)  # noqa: E731
            effects, curves = intervene(cfg.intervention, probe, rollouts, found, latents, shown)
        world.close()
        joined = decodable_and_used(effects, table)
        for name, frame in {
            "interventions": effects,
            "intervention_curves": curves,
            "decodable_and_used": joined,
        }.items():
            write_text(run / f"{name}.csv", frame.to_csv(index=False))
        (run / "interventions.png").write_bytes(png(intervention_figure(curves)))
        print(format_interventions(effects, joined))


if __name__ == "__main__":
    enter("intervene", main)
