"""Apply a trained run to other episodes: `python -m launch.embed run=runs/fish data=runs/fish_2027/data`."""

from pathlib import Path

from data_gen.storage.dataset import digest, read_dataset
from data_gen.storage.store import write_group
from data_gen.trajectory import SPLITS
from launch.applied import chosen_of, compared, folder_for, summary_of, trained_places
from launch.entry import enter
from launch.progress import progress
from launch.rundir import claim, provenance
from launch.schema.embed import Embedding
from launch.trained_on import check_meaning, trained_on
from marl_vae import load
from marl_vae.applying import embed_new, fitted
from marl_vae.embed import as_arrays
from marl_vae.files import write_text


def main(cfg: Embedding) -> None:
    """Write every encoder seed's latents, differences.csv and summary.md into the run's `embedded/<name>/`."""
    run, data = Path(cfg.run), Path(cfg.data)
    places = trained_places(run)
    found = read_dataset(data)
    models = {place: fitted(load(place), found, str(data)) for place in places}
    known = trained_on(run, models[places[0]])
    check_meaning(known, found, str(data))
    into, of = folder_for(cfg), {"path": str(data), "digest": digest(data)}
    with claim(run, {}, {}):
        for place, model in models.items():
            with progress(f"embed with {place}"):
                latents = embed_new(model, found.batch)
            note = {"of": of, "chosen": chosen_of(place), "splits": list(SPLITS), "provenance": provenance({})}
            arrays = as_arrays(latents, found.rows, found.split)
            write_group(into / place.relative_to(run) / "embeddings", arrays, note, replace=True)
        table = compared(known, found)
        write_text(into / "differences.csv", table.to_csv(index=False))
        said = summary_of(known, found, table, f"{len(found.split)} episodes of {data}, embedded by {run}")
        write_text(into / "summary.md", said)
    print(said)
    print(f"embeddings {into}")


if __name__ == "__main__":
    enter("embed", main)
