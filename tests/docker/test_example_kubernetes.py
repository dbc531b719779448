"""examples/kubernetes: right by the API's schemas, and in what it promises of the service's image."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from service_container import ROOT

MANIFEST = ROOT / "examples" / "kubernetes" / "service.yaml"
SERVICE = ROOT / "examples" / "cpp-service"


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    """By kind."""
    return {found["kind"]: found for found in yaml.safe_load_all(MANIFEST.read_text("utf-8"))}


@pytest.fixture(scope="module")
def pod(documents: dict[str, Any]) -> dict[str, Any]:
    return documents["Deployment"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod: dict[str, Any]) -> dict[str, Any]:
    (only,) = pod["containers"]
    return only


def checked(path: Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "check-manifests.sh"), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_is_valid() -> None:
    done = checked(MANIFEST)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("passed") == 4  # two documents, two versions of Kubernetes


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("readinessProbe:", "readynessProbe:"),
        ("runAsNonRoot: true", 'runAsNonRoot: "yes"'),
        ("maxSurge: 0", "maxSurge: {}"),
    ],
)
def test_a_manifest_with_a_fault_is_not(tmp_path: Path, right: str, wrong: str) -> None:
    text = MANIFEST.read_text("utf-8")
    assert text.count(right) == 1
    (tmp_path / "wrong.yaml").write_text(text.replace(right, wrong))
    assert checked(tmp_path / "wrong.yaml").returncode != 0


def test_requests_come_after_the_warm_up_and_load_is_not_taken_for_death(container: dict[str, Any]) -> None:
    paths = {
        name: container[name]["httpGet"]["path"]
        for name in ("startupProbe", "readinessProbe", "livenessProbe")
    }
    assert paths == {"startupProbe": "/readyz", "readinessProbe": "/readyz", "livenessProbe": "/healthz"}
    assert container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"] >= 300


def test_a_pod_is_given_the_time_that_the_service_takes_to_end(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    source = (SERVICE / "src" / "server.cpp").read_text("utf-8")
    drain, terminate = (
        int(found) for name in ("kDrain", "kTerminate") for found in re.findall(rf"{name} = (\d+)s;", source)
    )
    before = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > before + drain + terminate


def test_it_has_a_gpu_and_is_as_locked_up_as_the_tests_run_it(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 1
    user = re.search(r"^USER (\d+):(\d+)$", (SERVICE / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    assert user
    context = pod["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (int(user[1]), int(user[2]))
    assert context["runAsNonRoot"] is True
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_settings_are_those_that_the_service_reads_and_the_cache_is_a_volume(
    pod: dict[str, Any], container: dict[str, Any]
) -> None:
    settings = {found["name"]: found["value"] for found in container["env"]}
    source = (SERVICE / "src" / "settings.cpp").read_text("utf-8")
    for name in settings:
        assert name.startswith("CUDA_CACHE_") or f'"{name}"' in source, name
    mounts = {found["mountPath"]: found for found in container["volumeMounts"]}
    assert not mounts[settings["CUDA_CACHE_PATH"]].get("readOnly")
    assert mounts[str(Path(settings["MODEL"]).parent)]["readOnly"] is True
    assert {found["name"] for found in mounts.values()} == {found["name"] for found in pod["volumes"]}


def test_the_service_finds_the_pods(documents: dict[str, Any], container: dict[str, Any]) -> None:
    labels = documents["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert documents["Service"]["spec"]["selector"].items() <= labels.items()
    (port,) = documents["Service"]["spec"]["ports"]
    assert port["targetPort"] in {found["name"] for found in container["ports"]}
