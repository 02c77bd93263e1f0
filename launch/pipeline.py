"""The whole line, from agents that learn to a report: `python -m launch.pipeline`."""

from data_gen.storage.dataset import read_dataset
from data_gen.trajectory import check_hold_out
from launch import generate, probe, report, train
from launch.analysed import is_newer_than_report
from launch.analysis import analyse
from launch.data import check_domain_labels, data_folder, seen_data
from launch.encoders import embeddings_of
from launch.entry import enter, run_folder
from launch.log import logging_to
from launch.probed import done, read_probes
from launch.rundir import claim
from launch.schema.pipeline import Pipeline
from probes.audit import check_labels


def main(cfg: Pipeline) -> None:
    """Run or continue every stage in one folder."""
    run = run_folder(cfg.runs, cfg.name)
    if cfg.data:
        check_labels(cfg.probe, seen_data(cfg, run))
    else:
        check_hold_out(cfg.train.hold_out, list(range(cfg.recording.checkpoints)))
        check_domain_labels(cfg.probe.labels, cfg.domain)
    world = None if cfg.data else generate.world_for(cfg, run / "data")
    made = {} if cfg.data else generate.sections(cfg)
    own = {**made, **train.sections(cfg), "probe": cfg.probe}
    seeds = {"recording": cfg.recording.seed, **train.seeds(cfg), "probe": cfg.probe.seed}
    with claim(run, own, seeds), logging_to(cfg.logger, run, cfg.name) as logger:
        if not cfg.data:
            generate.generate(cfg, world, run / "data")
        check_labels(cfg.probe, seen_data(cfg, run))
        trained, found = train.train(cfg, run, logger), read_dataset(data_folder(cfg, run))
        if cfg.analysis:
            analyse(cfg, run, embeddings_of(run), found)
        if trained or not done(cfg.probe, run):
            probe.probe(cfg.probe, run, found)
        elif is_newer_than_report(run):
            report.report(run, found, read_probes(run)[0], embeddings_of(run)[run]["omega_mean"])
        print(f"report {run / 'report.html'}")


if __name__ == "__main__":
    enter("pipeline", main)
