"""How a container gets a GPU, and what the refusals of engines mean."""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest
from docker.models.containers import _create_container_args

from ortimg.core.gpu_access import (
    EVERY,
    Device,
    Fault,
    Way,
    builder_devices,
    docker_options,
    podman_command,
    podman_words,
    refusal_in,
    ways,
)
from ortimg.data import read_refusals
from ortimg.engine.client import Image, _image
from ortimg.engine.tar_stream import hash_in_tar
from ortimg.errors import ConfigError

UUID = "0929581a-2be6-5dec-bf34-0954c6c529a6"

# which GPU


@pytest.mark.parametrize("text", ["all", "0", "11", f"GPU-{UUID}", f"MIG-{UUID}", f"MIG-GPU-{UUID}/1/0"])
def test_a_gpu_by_number_or_uuid(text: str) -> None:
    assert Device.parse(text).name == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "-1",
        "none",
        "void",
        "0,1",
        "1000",
        "GPU-abc",
        f"GPU-{UUID[1:]}",
        "MIG-",
        f"gpu-{UUID}",
        f"GPU-{UUID}\n",
    ],
)
def test_anything_else_is_refused_with_what_is_right(text: str) -> None:
    with pytest.raises(ConfigError, match="nvidia-smi -L"):
        Device.parse(text)


def test_without_a_container_the_variables_choose() -> None:
    assert EVERY.variables == {}
    assert Device("1").variables == {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


# words for engines


def host_config(way: Way, device: Device) -> dict[str, object]:
    """What docker-py would send."""
    made = _create_container_args(
        {"image": "i", "command": [], "version": "1.45", **docker_options(way, device)}
    )
    config: dict[str, object] = made["host_config"]
    return config | {"Env": made.get("environment")}


def test_docker_gpus() -> None:
    (request,) = host_config(Way.GPUS, EVERY)["DeviceRequests"]  # type: ignore[misc]
    assert request == {"Driver": "", "Count": -1, "DeviceIDs": [], "Capabilities": [["gpu"]], "Options": {}}
    (request,) = host_config(Way.GPUS, Device(f"MIG-{UUID}"))["DeviceRequests"]  # type: ignore[misc]
    assert (request["Count"], request["DeviceIDs"]) == (0, [f"MIG-{UUID}"])


def test_docker_cdi_device() -> None:
    (request,) = host_config(Way.CDI, Device("0"))["DeviceRequests"]  # type: ignore[misc]
    assert (request["Driver"], request["DeviceIDs"]) == ("cdi", ["nvidia.com/gpu=0"])


def test_docker_nvidia_runtime() -> None:
    config = host_config(Way.RUNTIME, Device("0"))
    assert config["Runtime"] == "nvidia"
    assert config["Env"] == {"NVIDIA_VISIBLE_DEVICES": "0"}


def test_podman() -> None:
    """SELinux keeps a labelled container from the device files."""
    wanted = ["--device", "nvidia.com/gpu=0", "--security-opt", "label=disable"]
    assert podman_words(Device("0")) == wanted
    assert podman_words(EVERY)[1] == "nvidia.com/gpu=all"
    command = podman_command("r:t", Device("0"))
    assert command == f"podman run --rm {' '.join(wanted)} r:t ort-verify --tier run"


@pytest.mark.parametrize(
    ("info", "wanted"),
    [
        ({}, [Way.GPUS]),
        ({"Runtimes": {"runc": {}}, "CDISpecDirs": [], "DiscoveredDevices": None}, [Way.GPUS]),
        ({"CDISpecDirs": ["/etc/cdi"]}, [Way.GPUS, Way.CDI]),
        ({"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=all"}]}, [Way.GPUS, Way.CDI]),
        ({"DiscoveredDevices": [{"Source": "cdi", "ID": "amd.com/gpu=0"}]}, [Way.GPUS]),
        ({"Runtimes": {"nvidia": {}}}, [Way.GPUS, Way.RUNTIME]),
    ],
)
def test_ways_that_an_engine_may_know(info: dict[str, object], wanted: list[Way]) -> None:
    assert [*ways(info)] == wanted


# refusals; the texts are those of engines and toolkits, the longer ones from public reports

OCI = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create"
    " failed: unable to start container process: error during container init: error running prestart hook #0:"
    " exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\n"
)
OLD = (
    "OCI runtime create failed: container_linux.go:380: starting container process caused:"
    " process_linux.go:545: container init caused: Running hook #0:: error running hook: exit status 1,"
    " stdout: , stderr: "
)
CDI = (
    "failed to create task for container: failed to create shim task: OCI runtime create failed: could not"
    " apply required modification to OCI specification: error modifying OCI spec: failed to"
    " inject CDI devices: "
)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ('could not select device driver "" with capabilities: [[gpu]]', "no NVIDIA Container Toolkit"),
        ('could not select device driver "nvidia" with capabilities: [[gpu]]', "no NVIDIA Container Toolkit"),
        ('could not select device driver "cdi" with capabilities: []', "no NVIDIA Container Toolkit"),
        ("failed to discover GPU vendor from CDI: no known GPU vendor found", "no NVIDIA Container Toolkit"),
        ("unknown or invalid runtime name: nvidia", "no nvidia runtime"),
        (f"{CDI}unresolvable CDI devices nvidia.com/gpu=all: unknown", "no CDI specification"),
        (
            f"{OCI}nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please"
            " update your driver to a newer version, or use an earlier cuda container: unknown",
            "driver is older",
        ),
        (f"{OLD}nvidia-container-cli: device error: false: unknown device: unknown.", "no such GPU"),
        (
            f"{OLD}nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.",
            "not loaded",
        ),
        (
            f"{OCI}nvidia-container-cli: initialization error: cannot open shared object file: no such file"
            " or directory: unknown.",
            "no working NVIDIA driver",
        ),
        (
            f"{OCI}nvidia-container-cli: mount error: failed to add device rules: unable to generate new"
            " device filter program from existing programs: unknown.",
            "device files",
        ),
        (
            f"{OLD}nvidia-container-cli: ldcache error: process /sbin/ldconfig.real failed: unknown",
            "ldconfig",
        ),
        (f"{OLD}nvidia-container-cli: something of tomorrow", "cannot hand in the GPU"),
    ],
)
def test_a_refusal_is_the_machines_fault_and_tells_what_to_do(message: str, cause: str) -> None:
    told = refusal_in(message, read_refusals())
    assert told is not None
    assert told.fault is Fault.MACHINE
    assert cause in told.cause
    assert len(told.cure) > 20


def test_without_a_toolkit_both_ways_on_are_told() -> None:
    told = refusal_in('could not select device driver "" with capabilities: [[gpu]]', read_refusals())
    assert told is not None
    assert "install the NVIDIA Container Toolkit" in told.cure
    assert "ortimg verify DIR --tier run" in told.cure


def test_a_drivers_libraries_in_the_image_are_the_images_fault() -> None:
    text = (
        f"{OCI}nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/40c7/merged"
        "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1: file exists: unknown."
    )
    told = refusal_in(text, read_refusals())
    assert told is not None
    assert told.fault is Fault.IMAGE


@pytest.mark.parametrize(
    "message",
    [
        'exec: "/nothing-to-run": stat /nothing-to-run: no such file or directory: unknown',
        "no space left on device",
        "pull access denied for x",
        "",
    ],
)
def test_other_errors_say_nothing_of_gpus(message: str) -> None:
    assert refusal_in(message, read_refusals()) is None


def test_what_the_toolkit_says_after_the_driver_was_found_does_not_mean_no_gpu() -> None:
    reached = {row.texts[0] for row in read_refusals() if row.reached}
    assert reached == {"ldcache error"}


# builders

INSPECT = """\
Name:          gpubuilder
Driver:        docker-container

Nodes:
Name:                  gpubuilder0
Endpoint:              unix:///var/run/docker.sock
Labels:
 org.mobyproject.buildkit.worker.network: host
Devices:
 Name:                  nvidia.com/gpu=all
 Automatically allowed: true
 Annotations:
  Name: not this
 Name:      nvidia.com/gpu
 On-Demand: true
GC Policy rule#0:
 All:            false
"""


def test_devices_of_a_builder() -> None:
    assert builder_devices(INSPECT) == ("nvidia.com/gpu=all", "nvidia.com/gpu")
    assert builder_devices(INSPECT.partition("Devices:")[0]) == ()
    assert builder_devices("ERROR: no builder") == ()


# what an image's digest is

ID, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64


def image(identity: str, *digests: str) -> Image:
    return _image({"Id": identity, "RepoDigests": [f"r@{digest}" for digest in digests]})


def test_the_digest_is_the_manifests() -> None:
    assert image(ID, ID).digest == ID  # containerd store
    assert image(ID, OTHER, ID).digest == ID
    assert image(ID, OTHER).digest == OTHER  # classic store: an id is the config's digest
    assert image(ID).digest is None  # classic store, never pushed
    assert image(ID, OTHER, OTHER.replace("b", "c")).digest is None


def test_a_file_is_hashed_as_its_tar_comes() -> None:
    content = bytes(range(256)) * 20_000
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("lib.so")
        info.size = len(content)
        tar.addfile(info, io.BytesIO(content))
    whole = buffer.getvalue()
    chunks = [whole[start : start + 77_777] for start in range(0, len(whole), 77_777)]
    assert hash_in_tar(chunks) == hashlib.sha256(content).hexdigest()
    assert hash_in_tar([*chunks[:2], b"", *chunks[2:]]) == hashlib.sha256(content).hexdigest()
    assert hash_in_tar([b"\0" * 10240]) is None
