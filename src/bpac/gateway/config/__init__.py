"""The gateway's configuration: one TOML file as frozen values."""
