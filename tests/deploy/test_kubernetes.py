"""The manifests for Kubernetes."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.tools import DEPLOY, compose, documents, passes, run

MANIFESTS = [DEPLOY / name for name in documents(DEPLOY / "kustomization.yaml")[0]["resources"]]
OBJECTS = [found for file in MANIFESTS for found in documents(file)]


def _the(kind: str, name: str = "gateway") -> Any:
    (found,) = [one for one in OBJECTS if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def _pods() -> list[Any]:
    return [one["spec"]["template"] for one in (_the("Deployment"), _the("StatefulSet", "redis"))]


@pytest.mark.parametrize("version", ["1.27.0", "1.32.0", "1.37.0"])
def test_every_object_follows_the_schema(version: str, tmp_path: Path) -> None:
    """Strictly: a field that Kubernetes does not know is found."""
    check = ("kubernetes-validate", "--strict", "-k", version)
    passes(*check, *MANIFESTS)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((DEPLOY / "kubernetes" / "gateway.yaml").read_text().replace("readinessProbe", "readynessProbe"))
    assert run(*check, wrong).returncode != 0


def test_the_kustomization_names_files_that_exist() -> None:
    """All manifests are listed, and what is made from files has them; .env is the operator's."""
    found = documents(DEPLOY / "kustomization.yaml")[0]
    listed = {DEPLOY / name for name in found["resources"]}
    values = {DEPLOY / "kubernetes" / "prometheus-adapter.yaml"}  # of a Helm chart
    assert listed | values == set((DEPLOY / "kubernetes").iterdir())
    files = [name for generator in found["configMapGenerator"] for name in generator["files"]]
    assert all((DEPLOY / name).is_file() for name in files)
    assert found["secretGenerator"][0]["envs"] == [".env"]
    generated = {one["name"] for one in (*found["configMapGenerator"], *found["secretGenerator"])}
    used = set(
        re.findall(
            r"(?:secretRef|configMap|secretKeyRef): {name: ([\w-]+)", "".join(file.read_text() for file in MANIFESTS)
        )
    )
    assert used == generated


def test_pods_run_without_rights() -> None:
    """As the profile "restricted", which the namespace enforces, demands; with a read-only file system."""
    labels = _the("Namespace", "bpac")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    for pod in _pods():
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["spec"]["automountServiceAccountToken"] is False
        for container in pod["spec"]["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"requests", "limits"} <= set(container["resources"])


def test_probes_do_not_restart_a_gateway_whose_models_or_store_are_down() -> None:
    """Liveness asks whether the process answers, readiness whether it can answer callers."""
    (container,) = _the("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["startupProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_a_gateway_has_time_to_finish_its_requests() -> None:
    """The Service forgets it first, then it drains."""
    pod = _the("Deployment")["spec"]["template"]["spec"]
    sleep = int(pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][1])
    drain = float(re.search(r"^drain = (\d+)", (DEPLOY / "gateway.toml").read_text(), re.MULTILINE)[1])  # type: ignore[index]
    assert pod["terminationGracePeriodSeconds"] > sleep + drain


def test_scaling_and_disruptions_are_about_the_gateways() -> None:
    """The autoscaler reads requests in progress, and sets the number of replicas alone."""
    scaler, budget = _the("HorizontalPodAutoscaler")["spec"], _the("PodDisruptionBudget")["spec"]
    assert scaler["scaleTargetRef"]["name"] == "gateway"
    assert scaler["metrics"][0]["pods"]["metric"]["name"] == "bpac_in_flight"
    assert scaler["minReplicas"] >= 3
    assert "replicas" not in _the("Deployment")["spec"]
    pods = _the("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert budget["selector"]["matchLabels"] == pods == _the("Service")["spec"]["selector"]
    (values,) = documents(DEPLOY / "kubernetes" / "prometheus-adapter.yaml")
    assert values["rules"]["custom"][0]["name"]["as"] == "bpac_in_flight"


def test_only_gateways_reach_redis() -> None:
    """And by default nobody reaches anybody."""
    assert _the("NetworkPolicy", "default-deny")["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    redis = _the("NetworkPolicy", "redis")["spec"]
    gateways, _ = ({"matchLabels": pod["metadata"]["labels"]} for pod in _pods())
    assert [rule["from"] for rule in redis["ingress"]] == [[{"podSelector": gateways}]]


def test_all_replicas_write_archives_to_one_volume() -> None:
    """Replicas on different nodes mount it at once, where the configuration has its folder."""
    claim = _the("PersistentVolumeClaim", "archives")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    spec = _the("Deployment")["spec"]["template"]["spec"]
    assert {"name": "archives", "persistentVolumeClaim": {"claimName": "archives"}} in spec["volumes"]
    (mount,) = [one for one in spec["containers"][0]["volumeMounts"] if one["name"] == "archives"]
    config = tomllib.loads((DEPLOY / "gateway.toml").read_text())
    assert Path(config["gateway"]["archive"]["folder"]).is_relative_to(mount["mountPath"])


def test_images_are_those_of_the_compose_file() -> None:
    """Both deployments run the same versions."""
    (container,) = _the("StatefulSet", "redis")["spec"]["template"]["spec"]["containers"]
    services = compose()["services"]
    assert container["image"] == services["redis"]["image"]
    (image,) = documents(DEPLOY / "kustomization.yaml")[0]["images"]
    assert f"{image['name']}:{image['newTag']}" == services["gateway-1"]["image"]
    (gateway,) = _the("Deployment")["spec"]["template"]["spec"]["containers"]
    assert gateway["args"] == services["gateway-1"]["command"]


def test_prometheus_in_a_cluster_has_a_valid_configuration(tmp_path: Path) -> None:
    """Debian's promtool is built without Kubernetes: its part is replaced by a list of targets for the check."""
    (config,) = documents(DEPLOY / "prometheus" / "kubernetes.yml")
    for job in config["scrape_configs"]:
        assert job.pop("kubernetes_sd_configs")[0]["namespaces"] == {"names": ["bpac"]}
        job["static_configs"] = [{"targets": ["127.0.0.1:1"]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    (tmp_path / "alerts.yml").write_text((DEPLOY / "prometheus" / "alerts.yml").read_text())
    passes("promtool", "check", "config", "--syntax-only", tmp_path / "prometheus.yml")
