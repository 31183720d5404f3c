"""The container file and the compose file."""

import re
from pathlib import Path
from typing import Any

import pytest

from bpac.gateway.config.file import load_config
from tests.deploy.compose_processes import GATEWAYS
from tests.deploy.tools import DEPLOY, compose, passes, run, yaml_files

CONTAINER_FILE = (DEPLOY / "Containerfile").read_text()


def _example_variables() -> set[str]:
    return set(re.findall(r"^([A-Z_]+)=", (DEPLOY / ".env.example").read_text(), re.MULTILINE))


def test_the_container_file_passes_its_linter() -> None:
    """Hadolint, with the checks of shell commands, has nothing to say."""
    assert passes("hadolint", DEPLOY / "Containerfile") == ""


def test_the_image_runs_without_rights() -> None:
    """It is built in a stage of its own, from a base with a full version, and ends as a user that is not root."""
    bases = re.findall(r"^FROM (\S+)", CONTAINER_FILE, re.MULTILINE)
    assert len(bases) == 2
    assert all(re.search(r":\d+\.\d+\.\d+", base) for base in bases)
    assert re.findall(r"^USER (\S+)", CONTAINER_FILE, re.MULTILINE)[-1] == "10001:10001"
    assert "HEALTHCHECK" in CONTAINER_FILE


def test_the_compose_file_follows_its_specification() -> None:
    """And a mistake in it is found."""
    schema = ("--builtin-schema", "vendor.compose-spec")
    assert "ok" in passes("check-jsonschema", *schema, DEPLOY / "compose.yaml")
    assert run("check-jsonschema", *schema, DEPLOY / "kustomization.yaml").returncode != 0


@pytest.mark.parametrize("service", sorted(compose()["services"]))
def test_every_service_is_hardened(service: str) -> None:
    """A read-only file system, no capabilities, no further privileges, and an image with a full version."""
    settings: dict[str, Any] = compose()["services"][service]
    assert settings["read_only"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert settings["security_opt"] == ["no-new-privileges:true"]
    assert settings["restart"] == "unless-stopped"
    assert re.search(r":v?\d+\.\d+\.\d+(-alpine)?$", settings["image"])
    for secret in settings.get("secrets", []):
        # From the environment, a container with a read-only file system would not start.
        assert "file" in compose()["secrets"][secret]


def test_there_are_three_equal_replicas_with_time_to_finish() -> None:
    """They differ in nothing, and are not killed before they have drained."""
    services = compose()["services"]
    first, *others = [services[name] for name in GATEWAYS]
    assert others == [first, first]
    drain = float(re.search(r"^drain = (\d+)", (DEPLOY / "gateway.toml").read_text(), re.MULTILINE)[1])  # type: ignore[index]
    assert float(first["stop_grace_period"].removesuffix("s")) > drain


def test_only_gateways_reach_redis() -> None:
    """Its network has no way out, and nobody else is in it."""
    found = compose()
    assert found["services"]["redis"]["networks"] == ["store"]
    assert found["networks"]["store"]["internal"] is True
    members = {name for name, settings in found["services"].items() if "store" in settings["networks"]}
    assert members == {*GATEWAYS, "redis"}
    assert "ports" not in found["services"]["redis"]


def test_the_configuration_can_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variables of the example, which are those of the compose file; callers cannot read the metrics."""
    variables = _example_variables()
    for name in variables:
        monkeypatch.setenv(name, f"key of {name}")
    config = load_config(DEPLOY / "gateway.toml")
    assert config.store == "redis://:env:REDIS_PASSWORD@redis:6379/0"
    assert config.archive is not None
    assert f"archives:{Path(config.archive.folder).parent}" in compose()["services"]["gateway-1"]["volumes"]
    assert {role for key in config.keys for role in key.roles} == {"call", "operator"}
    used = set(re.findall(r"\$\{([A-Z_]+)", (DEPLOY / "compose.yaml").read_text()))
    assert used == variables


def test_the_load_balancer_accepts_its_configuration() -> None:
    """It names the replicas of the compose file; outside their network it only warns that it cannot find them."""
    assert "Configuration file is valid" in passes("haproxy", "-c", "-f", DEPLOY / "haproxy" / "haproxy.cfg")
    text = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
    assert set(re.findall(r"server (\S+) \1:8800", text)) == set(GATEWAYS)


def test_every_yaml_file_passes_its_linter() -> None:
    """No tabs, no doubled keys, no lines without end."""
    assert passes("yamllint", "--strict", "-c", DEPLOY / ".yamllint.yaml", *yaml_files()) == ""


def test_nothing_secret_is_kept_in_the_repository() -> None:
    """What operators fill in is ignored by git, and the example has no keys."""
    assert (DEPLOY / ".gitignore").read_text().split() == [".env"]
    assert "BPAC_KEY=\n" in (DEPLOY / ".env.example").read_text()
