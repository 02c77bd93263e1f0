"""The config of every entry point, a file each, which makes it known to hydra under the name of its YAML file."""
