"""Records of warm-ups: what they prove, which image they fit, and what the warmed image is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from warm_records import IDENTIFIER, PROVIDER, SHA256, UNWRITABLE, record, report, start, starts

from ortimg.core.catalogue import Index
from ortimg.core.drivers import Driver
from ortimg.core.fit_rules import Host
from ortimg.core.gpu import Capability
from ortimg.core.gpu_names import Gpu
from ortimg.core.warm import (
    Baked,
    Original,
    Warmed,
    cache_limit,
    check_build,
    check_cell,
    check_original,
    dockerfile,
    labels,
    read_size,
    summary,
    wants_seed,
    warmed_name,
)
from ortimg.core.warm_host import check_host, check_labels, expect
from ortimg.core.warm_record import Step, Use, Warmth, judge, parse_record
from ortimg.core.warm_words import Outcome, as_data, as_text, check_data, check_text
from ortimg.data import read_catalogue
from ortimg.errors import CheckFailed, ConfigError

BAKED = Baked(files=5, bytes=4_400_000)
GIB = 1 << 30
# Of a real GPU, shortened: its driver did not use a cache that it could not write to; no copy was tried.
REAL = Path(__file__).parent / "records" / "warm-h200-580.159.04.json"


def warmth(**changes: Any) -> Warmth:
    return judge(parse_record(json.dumps(record(**changes)).encode()))


def original(**changes: Any) -> Original:
    whole: dict[str, Any] = {
        "reference": f"onnxruntime-gpu:{IDENTIFIER}",
        "id": "sha256:" + "12" * 32,
        "entrypoint": (),
        "command": ("ort-verify", "--tier", "static"),
    }
    return Original(**(whole | changes))


def test_a_record_of_a_good_warm_up_proves_itself() -> None:
    found = warmth()
    assert (found.gpu.architecture, found.gpu.driver) == ("sm90", "580.159.04")
    assert (found.cold, found.second, found.copied) == ((9.9,), (0.5,) * 3, (0.55,) * 3)
    assert found.baked == found.copied
    assert found.ratio == pytest.approx(1.1)
    assert not found.native


def test_a_driver_that_must_write_is_no_failure() -> None:
    found = warmth()
    assert found.use is Use.WRITABLE
    assert found.unwritable == tuple((kind, False) for kind in UNWRITABLE)
    assert found.read_only == ()
    assert "not used: read-only-mount, other-uid, no-write-bits" in as_text(outcome())


def test_a_driver_that_need_not_write_is_measured_as_an_image_has_it() -> None:
    found = warmth(attempts=starts(read_only=True))
    assert found.use is Use.READ_ONLY
    assert found.baked == found.read_only == (0.6,) * 9
    assert found.ratio == pytest.approx(1.2)
    text = as_text(outcome(lambda _: found))
    assert "read-only use: works (used: read-only-mount, other-uid, no-write-bits)" in text


@pytest.mark.parametrize(
    ("skipped", "failing", "use"),
    [
        ((), (), Use.READ_ONLY),
        (("no-write-bits",), (), Use.READ_ONLY),
        (("other-uid",), (), Use.READ_ONLY),  # a container: the owner without a right to write
        (("read-only-mount",), (), Use.WRITABLE),  # a root that is read-only was not tried
        (("other-uid", "no-write-bits"), (), Use.WRITABLE),  # a cache of another user was not tried
        (UNWRITABLE, (), Use.WRITABLE),
        ((), ("read-only-mount",), Use.WRITABLE),
        ((), ("other-uid",), Use.WRITABLE),
        ((), ("no-write-bits",), Use.READ_ONLY),  # modes that no image has
        (("other-uid",), ("no-write-bits",), Use.WRITABLE),
    ],
)
def test_both_ways_of_not_being_able_to_write_must_be_shown(
    skipped: tuple[str, ...], failing: tuple[str, ...], use: Use
) -> None:
    attempts = [
        start(one["name"], False) if one["name"].removesuffix("-no-jit") in failing else one
        for one in starts(read_only=True, skipped=skipped)
    ]
    found = warmth(attempts=attempts)
    assert found.use is use
    assert {kind for kind, used in found.unwritable if not used} == set(failing)


def test_a_start_that_compiled_again_does_not_count_as_used() -> None:
    """Timed starts that went well prove nothing where the start without compiling did not."""
    attempts = starts() + [start(kind) for kind in UNWRITABLE]
    found = warmth(attempts=attempts)
    assert (found.use, found.read_only) == (Use.WRITABLE, ())


def test_a_start_that_may_fail_need_not_have_a_report() -> None:
    for name in ("second-no-jit", "read-only-mount-no-jit", "other-uid-no-jit", "no-write-bits-no-jit"):
        found = warmth(**instead(name, exit=134, report=None))
        assert found.use is Use.WRITABLE


def test_a_record_of_a_real_gpu_is_read_and_lacks_the_copy() -> None:
    real = parse_record(REAL.read_bytes())
    assert [one.exit for one in real.attempts if one.name is Step.LOCKED_PROOF] == [1]  # "baked-no-jit" there
    assert [one.exit for one in real.attempts if one.name is Step.LOCKED] == [0, 0, 0]  # and compiled again
    with pytest.raises(CheckFailed, match="a start with a copy of the cache"):
        judge(real)


def test_the_same_record_with_a_copy_makes_an_image_that_copies() -> None:
    real = json.loads(REAL.read_bytes())
    made_up = [start(name) for name in ("copied-no-jit", "copied")]
    found = judge(parse_record(json.dumps(real | {"attempts": real["attempts"] + made_up}).encode()))
    assert (found.use, found.unwritable) == (Use.WRITABLE, (("no-write-bits", False),))
    assert min(found.cold) > 28
    assert max(found.second) < 0.3
    assert found.read_only == ()
    assert wants_seed(found, None)


@pytest.mark.parametrize(
    ("read_only", "wish", "seed"),
    [(False, None, True), (False, True, True), (True, None, False), (True, True, True), (True, False, False)],
)
def test_the_entrypoint_comes_where_the_driver_must_write(
    read_only: bool, wish: bool | None, seed: bool
) -> None:
    assert wants_seed(warmth(attempts=starts(read_only)), wish) is seed


def test_no_image_is_made_that_would_compile_at_each_start() -> None:
    with pytest.raises(CheckFailed, match="compile at each start") as caught:
        wants_seed(warmth(), False)
    assert caught.value.hint == "Leave --no-seed out."


def test_where_nothing_is_gained_nothing_is_copied() -> None:
    assert wants_seed(warmth(attempts=[start("no-cache", passed=True)]), None) is False


def with_device(**changes: Any) -> dict[str, Any]:
    changed = start("second")
    changed["report"]["run"]["device"] |= changes
    return {"attempts": [*record()["attempts"], changed]}


def without(name: str) -> dict[str, Any]:
    return {"attempts": [one for one in record()["attempts"] if one["name"] != name]}


def instead(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "attempts": [one | changes if one["name"] == name else one for one in record()["attempts"]],
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attempts": []}, "no start without a cache"),
        (without("no-cache"), "no start without a cache"),
        (without("cold"), "ends before the proof"),
        (without("second"), "ends before the proof"),
        (without("copied"), "ends before the proof"),
        (without("copied-no-jit"), "ends before the proof"),
        (instead("copied-no-jit", ptx_jit=True), "no start with the cache and without compiling"),
        (instead("other-uid-no-jit", ptx_jit=True), "no start with the cache and without compiling"),
        (instead("no-cache", ptx_jit=True), "no start without a cache and without compiling"),
        (instead("copied-no-jit", exit=1, report=report(False, None)), "PTX JIT compilation was disabled"),
        (instead("cold", exit=3), "'cold' failed"),
        (instead("cold", exit=134, report=None), "exit 134, without a report"),
        (instead("second", report=None), "'second' has no report of a run"),
        (instead("second", report=report(True, None)), "'second' has no time"),
        (with_device(driver="535.54.03"), "different GPUs or drivers"),
        (with_device(compute="8.9"), "different GPUs or drivers"),
        (with_device(driver=None), "on which GPU and driver"),
        (with_device(driver="580;rm"), "on which GPU and driver"),
        (with_device(compute='9.0" x="'), "on which GPU and driver"),
        ({"identifier": None}, "of which cell"),
        ({"identifier": "a b"}, "of which cell"),
        ({"libraries": {}}, "of which cell"),
        ({"libraries": {PROVIDER: "nonsense"}}, "of which cell"),
    ],
)
def test_a_record_that_proves_nothing_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(CheckFailed, match=words):
        warmth(**changes)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        json.dumps(record()).encode()[:-200],
        json.dumps(record()).encode() + b"{}",
        json.dumps(record(schema=2)).encode(),
        json.dumps(record(kind="other")).encode(),
        json.dumps(record(attempts=[start("second") | {"name": "nap"}])).encode(),
        b"[" * 100_000,
    ],
)
def test_what_is_no_whole_record_is_refused(raw: bytes) -> None:
    with pytest.raises(CheckFailed, match=r"warm\.json is "):
        parse_record(raw)


def test_a_record_that_is_too_large_is_refused() -> None:
    with pytest.raises(CheckFailed, match="no record of a warm-up"):
        parse_record(b" " * ((64 << 20) + 1))


def test_a_gpu_that_runs_without_compiling_gains_nothing() -> None:
    found = warmth(attempts=[start("no-cache", passed=True)])
    assert found.native
    outcome = Outcome(target="x", warmth=found, record="out")
    assert not outcome.gained
    assert "nothing is gained: the model ran while the driver could compile nothing" in as_text(outcome)
    assert as_data(outcome)["image"] is None


def test_the_name_of_a_gpu_cannot_break_out_of_a_label() -> None:
    attempts = record()["attempts"]
    for one in attempts:
        one["report"]["run"]["device"]["name"] = 'GPU"\nRUN x $PATH'
    text = dockerfile(warmth(attempts=attempts), original(), BAKED, GIB, seed=False)
    assert "\nRUN" not in text
    assert "$" not in text


def test_a_record_fits_every_base_of_the_same_build() -> None:
    assert check_cell(warmth(), "an:image", IDENTIFIER) is None
    other = IDENTIFIER.replace("debian12", "rocky9")
    assert "another base" in str(check_cell(warmth(), "an:image", other))
    check_build(warmth(), "an:image", SHA256)


@pytest.mark.parametrize(
    "identifier",
    ["1.17.1-cuda11.8-cudnn8-debian12", "1.16.2-cuda12.2-cudnn8-debian12", "1.16.2-cuda11.8-cudnn9-debian12"],
)
def test_a_record_of_another_cell_is_refused(identifier: str) -> None:
    with pytest.raises(CheckFailed, match=f"is {identifier}, which has other kernels"):
        check_cell(warmth(), "an:image", identifier)


@pytest.mark.parametrize("sha256", [None, "cd" * 32])
def test_a_record_of_another_build_of_the_same_version_is_refused(sha256: str | None) -> None:
    with pytest.raises(CheckFailed, match="another build"):
        check_build(warmth(), "an:image", sha256)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({}, "no label ortimg.identifier"),
        (
            {"ortimg.identifier": IDENTIFIER, "ortimg.warm.from": "sha256:1", "ortimg.warm.compute": "9.0"},
            "warmed already",
        ),
        ({"ortimg.identifier": f"{IDENTIFIER}-python3.11"}, "Python wheel"),
    ],
)
def test_an_image_that_cannot_be_warmed_is_wrong_usage(told: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_original("some:image", told)


@pytest.mark.parametrize(
    ("text", "size"), [("1", 1), ("2G", 2 * GIB), ("2GiB", 2 * GIB), ("512m", 512 << 20), ("4096 ", 4096)]
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "-1", "1.5G", "2T", "1e9", "9" * 13])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is no size"):
        read_size(text)


def test_the_limit_leaves_room_to_grow() -> None:
    assert cache_limit(BAKED, None) == GIB
    assert cache_limit(Baked(files=9, bytes=GIB // 2), None) == 2 * GIB
    assert cache_limit(Baked(files=9, bytes=3 * GIB), None) == 4 * GIB
    assert cache_limit(BAKED, 5_000_000) == 5_000_000


def test_a_limit_that_throws_kernels_out_is_refused() -> None:
    with pytest.raises(ConfigError, match="kernels would be thrown out"):
        cache_limit(BAKED, 1 << 20)
    with pytest.raises(ConfigError, match="at the most"):
        cache_limit(BAKED, 5 * GIB)
    with pytest.raises(CheckFailed, match="at the most"):
        cache_limit(Baked(files=9, bytes=4 * GIB + 1), None)


def test_the_name_says_what_the_cache_is_for() -> None:
    assert (
        warmed_name(f"onnxruntime-gpu:{IDENTIFIER}", warmth())
        == f"onnxruntime-gpu:{IDENTIFIER}-warm-sm90-580.159.04"
    )
    mine = "localhost:5000/team/app:1.0"
    assert warmed_name(mine, warmth()) == "localhost:5000/team/app:1.0-warm-sm90-580.159.04"


def test_a_name_that_gets_too_long_is_refused() -> None:
    with pytest.raises(ConfigError, match="128 are allowed"):
        warmed_name("a:" + "x" * 120, warmth())


def test_the_dockerfile_adds_one_layer_and_says_what_it_is_for() -> None:
    text = dockerfile(warmth(), original(), BAKED, GIB, seed=False)
    steps = [line.split()[0] for line in text.splitlines() if line[:1].isupper()]
    assert steps == ["FROM", "COPY", "ENV", "LABEL"]
    assert f"FROM onnxruntime-gpu:{IDENTIFIER}\n" in text
    assert "CUDA_CACHE_PATH=/usr/share/ortimg/warm/cache" in text
    assert f"CUDA_CACHE_MAXSIZE={GIB}" in text
    told = labels(warmth(), "sha256:12", BAKED, GIB)
    assert all(f'{key}="' in text for key in told)
    assert f'ortimg.warm.from="{original().id}"' in text
    assert (told["ortimg.warm.compute"], told["ortimg.warm.driver"]) == ("9.0", "580.159.04")


def test_the_entrypoint_goes_before_the_images_own_and_the_command_stays() -> None:
    mine = original(entrypoint=("/init", "--"), command=("serve", "a b"))
    text = dockerfile(warmth(), mine, BAKED, GIB, seed=True)
    assert 'ENTRYPOINT ["/usr/local/bin/ortimg-seed", "/init", "--"]\nCMD ["serve", "a b"]\n' in text


@pytest.mark.parametrize(("read_only", "use"), [(True, "read-only"), (False, "writable")])
def test_the_image_says_what_its_driver_does(read_only: bool, use: str) -> None:
    found = warmth(attempts=starts(read_only))
    assert f'"use": "{use}"' in summary(found, BAKED, GIB).decode()  # seed.sh looks for this
    assert labels(found, "sha256:12", BAKED, GIB)["ortimg.warm.use"] == use


def test_the_summary_in_the_image_is_json() -> None:
    told = json.loads(summary(warmth(), BAKED, GIB))
    assert told["gpu"] == {"name": "NVIDIA H200", "compute": "9.0", "driver": "580.159.04"}
    assert told["cache"]["bytes"] == BAKED.bytes


@pytest.fixture(scope="module")
def index() -> Index:
    return Index(read_catalogue())


@pytest.mark.parametrize(
    ("identifier", "gpu", "native"),
    [
        (IDENTIFIER, (8, 6), True),
        (IDENTIFIER, (9, 0), False),
        ("1.18.0-cuda12.2-cudnn8-debian12", (9, 0), False),
        ("1.23.2-cuda12.6-cudnn9-debian12", (9, 0), True),
        ("9.9.9-cuda12.6-cudnn9-debian12", (9, 0), False),
        ("nonsense", (9, 0), False),
        ("1.16.2-cudax-cudnn8-debian12", (9, 0), False),
    ],
)
def test_the_catalogue_tells_where_nothing_is_gained(
    index: Index, identifier: str, gpu: tuple[int, int], native: bool
) -> None:
    expected = expect(index, identifier, [Capability(*gpu)])
    assert expected.native is native
    assert ("nothing is gained" in expected.words) is native


def test_of_two_gpus_both_must_be_native(index: Index) -> None:
    assert not expect(index, IDENTIFIER, [Capability(8, 0), Capability(9, 0)]).native
    assert not expect(index, IDENTIFIER, []).native


def host(capability: tuple[int, int], driver: str) -> Host:
    return Host(driver=Driver(driver), gpus=(Gpu(name="GPU", capability=Capability(*capability)),))


@pytest.mark.parametrize(
    ("here", "failing"),
    [
        (host((9, 0), "580.159.04"), []),
        (host((8, 9), "580.159.04"), ["warm.gpu"]),
        (host((9, 0), "580.159.05"), ["warm.driver"]),
        (host((8, 0), "535.54.03"), ["warm.gpu", "warm.driver"]),
        (Host(driver=Driver(None, "13.0")), ["warm.gpu", "warm.driver"]),
    ],
)
def test_a_cache_fits_the_same_gpu_and_driver_only(here: Host, failing: list[str]) -> None:
    found = check_host(labels(warmth(), "sha256:12", BAKED, GIB), here)
    assert [finding.check for finding in found if finding.verdict == "fail"] == failing
    assert check_data("x", found)["verdict"] == ("fail" if failing else "pass")
    assert ("cure" in check_text("x", found)) is bool(failing)


def test_an_image_without_a_cache_cannot_be_checked() -> None:
    with pytest.raises(ConfigError, match="holds no cache"):
        check_labels("an:image", {"ortimg.identifier": IDENTIFIER})


def outcome(change: Callable[[Warmth], Warmth] = lambda same: same, seeded: bool = False) -> Outcome:
    made = Warmed(
        reference="a:b",
        dockerfile="out/image/Dockerfile",
        baked=BAKED,
        limit=GIB,
        caution=None,
        seeded=seeded,
    )
    return Outcome(target="a", warmth=change(warmth()), record="out", made=made)


def test_the_words_hold_the_times_the_proof_and_what_makes_it_useless() -> None:
    text = as_text(outcome())
    assert "cold start         9.900 s" in text
    assert "1.10 of a second start's" in text
    assert "CUDA_DISABLE_PTX_JIT=1 fails without the cache, and runs with a copy of it" in text
    assert "another driver than 580.159.04" in text
    assert "ODD" not in text
    data = as_data(outcome())
    assert (data["schema"], data["gained"], data["image"]) == (1, True, "a:b")
    assert data["first_run_seconds"]["cold"] == [9.9]
    assert (data["use"], data["unwritable"]["other-uid"], data["seeded"]) == ("writable", False, False)
    assert "ortimg-seed" not in text


def test_the_words_say_why_the_image_copies() -> None:
    text = as_text(outcome(seeded=True))
    assert "copies 4.4 MB to where it can write, since driver 580.159.04 does not use a cache that" in text
    assert "read-only use: driver 580.159.04 does not (not used: read-only-mount" in text
    grows = as_text(outcome(lambda _: warmth(attempts=starts(read_only=True)), seeded=True))
    assert "so that the cache can grow" in grows


def test_a_baked_cache_that_is_slow_is_called_odd() -> None:
    slow = start("copied") | {"report": report(True, 0.9)}
    found = warmth(attempts=[*without("copied")["attempts"], slow])
    assert "ODD" in as_text(outcome(lambda _: found))
