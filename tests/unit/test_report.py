"""`ortimg report`: the page is whole, safe and readable, and says nothing that is not known."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element

import msgspec
import pytest
from click.testing import CliRunner, Result
from hosts import DRIVERS, FACTS
from pages import (
    CUDA,
    DIGEST,
    HOSTILE,
    IMAGES,
    MADE,
    NOW,
    ONE,
    OTHER,
    THIRD,
    TWO,
    bench,
    full_facts,
    page,
    plain_facts,
    verdict,
)
from tinyhtml5.parser import HTMLParser
from wishes import cell, images, matrix, planned

from ortimg.cli import cli
from ortimg.core.fit import fit
from ortimg.core.fit_rules import Host
from ortimg.core.gpu import Capability
from ortimg.core.gpu_names import Gpu
from ortimg.core.report import report_page
from ortimg.core.report_bench import factory_plot, plot
from ortimg.core.report_facts import BenchFact, FactoryFact, RatioFact, ReportFacts
from ortimg.core.report_layers import WIDTH, layer_picture
from ortimg.core.report_words import age, amount
from ortimg.reporting.engine import read_origins, read_time, unit_name
from ortimg.verify.report import Report, Verdict, encode, parse_report

PAGES = {"plain": plain_facts, "full": full_facts}
RUNS = Path(__file__).parents[2] / "docs" / "gpu-runs"
every_page = pytest.mark.parametrize("name", PAGES)


def tree(text: str) -> tuple[Element, list[object]]:
    parser = HTMLParser(namespace_html_elements=False)
    return parser.parse(text), parser.errors


@cache
def read(name: str) -> tuple[Element, list[object]]:
    return tree(page(PAGES[name]()))


def words(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def by_id(root: Element, name: str) -> Element:
    (found,) = (one for one in root.iter() if one.get("id") == name)
    return found


# the page


@every_page
def test_a_page_is_html_without_a_fault(name: str) -> None:
    root, errors = read(name)
    assert errors == []
    assert root.get("lang") == "en"


@every_page
def test_a_page_asks_nobody_for_anything(name: str) -> None:
    root, _ = read(name)
    for element in root.iter():
        assert element.tag not in ("link", "img", "iframe", "object", "embed", "base", "audio", "video")
        for attribute, value in element.attrib.items():
            assert not attribute.startswith("on"), attribute
            assert attribute not in ("style", "src", "srcset", "action", "data", "formaction", "ping")
            if attribute.rpartition("}")[2] == "href":
                assert value.startswith("#")
    style = words(next(root.iter("style")))
    assert "url(" not in style
    assert "@import" not in style


@every_page
def test_only_the_pages_own_script_and_style_may_run(name: str) -> None:
    root, _ = read(name)
    (policy,) = (one.get("content") for one in root.iter("meta") if one.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    for kind in ("script", "style"):
        (element,) = root.iter(kind)
        digest = hashlib.sha256((element.text or "").encode()).digest()
        assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_hostile_words_stay_words() -> None:
    text = page(full_facts())
    root, _ = tree(text)
    assert "onerror=alert" not in re.sub(r"&#34;.*?\}\}", "", text)
    assert len([*root.iter("script")]) == 1
    assert " ".join(HOSTILE.split()) in words(by_id(root, "inputs"))
    for place in ("images", "bench", "excluded", "inputs"):
        assert "alert(1)" in words(by_id(root, place)), place
    assert "49" not in words(by_id(root, "excluded"))


@every_page
def test_ids_are_unique_and_what_points_to_them_finds_them(name: str) -> None:
    root, _ = read(name)
    ids = Counter(one.get("id") for one in root.iter() if one.get("id"))
    assert [one for one, count in ids.items() if count > 1] == []
    for element in root.iter():
        for attribute in ("for", "aria-labelledby", "aria-describedby", "data-copy"):
            if (value := element.get(attribute)) is not None:
                assert value in ids, (attribute, value)
        if (link := element.get("href")) is not None:
            assert link.removeprefix("#") in ids


@every_page
def test_a_screen_reader_finds_its_way(name: str) -> None:
    root, _ = read(name)
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert len([*root.iter(landmark)]) == 1, landmark
    levels = [int(one.tag[1]) for one in root.iter() if re.fullmatch("h[1-6]", str(one.tag))]
    assert all(below - above <= 1 for above, below in pairwise(levels))
    for table in root.iter("table"):
        assert all(one.get("scope") for one in table.iter("th"))
        rows = [*next(table.iter("tbody")).iter("tr")]
        assert all(row[0].tag == "th" and row[0].get("scope") == "row" for row in rows)
    for picture in root.iter("svg"):
        assert picture.get("role") == "img"
        assert picture.get("aria-label")
    for button in root.iter("button"):
        assert words(button).startswith("Copy the ")
    count = by_id(root, "count")
    assert count.get("aria-live") == "polite"


@every_page
def test_what_needs_a_script_is_hidden_until_one_runs(name: str) -> None:
    root, _ = read(name)
    assert all(one.get("hidden") is not None for one in root.iter("button"))
    assert by_id(root, "search").get("hidden") is not None


@every_page
def test_the_same_facts_give_the_same_bytes(name: str) -> None:
    assert page(PAGES[name]()) == page(PAGES[name]())


def test_every_image_has_its_pull_command_and_its_tags() -> None:
    facts = plain_facts()
    root, _ = tree(page(facts))
    for row in facts.cells:
        card = by_id(root, f"c-{row.identifier}")
        command = words(by_id(root, f"pull-{row.identifier}"))
        assert command == f"docker pull registry.example.com/team/onnxruntime-gpu:{row.identifier}"
        assert [words(one) for one in card.iter("code") if one.get("class") == "tag"] == [*row.tags]


def test_every_combination_that_is_not_built_has_its_reason() -> None:
    facts = plain_facts()
    text = words(by_id(tree(page(facts))[0], "excluded"))
    assert facts.excluded
    for row in facts.excluded:
        assert row.identifier in text
        assert row.reason in text


# what is known, and what is not


def test_without_an_engine_there_is_no_number_of_bytes() -> None:
    root, _ = tree(page(plain_facts()))
    assert re.findall(r"[\d.]+ [kMGT]?B\b", words(by_id(root, "layers"))) == []
    assert re.findall(r"[\d.]+ [kMGT]?B\b", words(by_id(root, "images"))) == []
    assert words(by_id(root, f"c-{ONE}")).endswith("Tier not built here")
    assert "No engine was read here (no engine answers)" in words(next(root.iter("header")))


def test_a_build_elsewhere_tells_sizes_with_its_file() -> None:
    (card,) = (one for one in report_page(full_facts()).cards if one.identifier == THIRD)
    (size,) = card.facts
    assert size[1] == f"2.40 GB unpacked, 7 B of its own, as build{HOSTILE}.json says"


def grids(facts: ReportFacts) -> dict[str, dict[str, tuple[str, str | None]]]:
    """By identifier: capability → verdict, and whether it ran."""
    found = report_page(facts).fit
    return {
        row.identifier: {
            column.capability: (square.verdict, square.ran)
            for column, square in zip(found.columns, row.squares, strict=True)
        }
        for row in found.rows
    }


def grid(facts: ReportFacts, identifier: str) -> dict[str, tuple[str, str | None]]:
    return grids(facts)[identifier]


def test_the_grid_says_what_fit_says() -> None:
    wheel = cell("1.19.2", "12.6", "9", flavour="python3.11")  # has code for 5.2, which the archive lacks
    more = planned(images(matrix=matrix(["1.19.2"], ["12.6"], ["9"], ["debian12"]), include=[wheel])).cells
    facts = plain_facts()
    facts = msgspec.structs.replace(facts, cells=(*facts.cells, *more))
    found = grids(facts)
    for row in FACTS.gpus:
        if not row.names:
            continue
        major, minor = map(int, row.capability.split("."))
        host = Host(gpus=(Gpu(name=None, capability=Capability(major, minor)),))
        for answer in fit(facts.cells, host, DRIVERS):
            shown = found[answer.cell.identifier]
            if row.capability in shown:
                assert shown[row.capability][0] == answer.verdict.value
            else:  # left out: every cell refuses
                assert answer.verdict.value == "refused"


def test_a_recorded_run_is_shown_where_it_ran_and_nowhere_else() -> None:
    shown = grid(full_facts(), ONE)
    assert shown["9.0"][1] == "passed"
    assert [ran for name, (_, ran) in shown.items() if name != "9.0" and ran] == []
    assert all(ran is None for _, ran in grid(full_facts(), TWO).values())


def test_a_failure_outweighs_a_pass_on_the_same_gpus() -> None:
    facts = msgspec.structs.replace(full_facts(), verdicts=(verdict(), verdict(passed=False)))
    assert grid(facts, ONE)["9.0"][1] == "failed"


def test_a_verdict_on_another_build_is_no_verdict_on_this_image() -> None:
    facts = msgspec.structs.replace(full_facts(), verdicts=(verdict(digest=OTHER),))
    assert grid(facts, ONE)["9.0"][1] is None
    (card,) = (one for one in report_page(facts).cards if one.identifier == ONE)
    (row,) = card.verdicts
    assert row.other
    assert row.words.endswith(f"of another image of this cell, {OTHER}")


def test_a_driver_column_begins_where_something_changes() -> None:
    found = report_page(plain_facts()).drivers
    rows = dict(found.rows)
    by_driver = {cuda: dict(zip(found.drivers, words, strict=True)) for cuda, words in rows.items()}
    assert by_driver["11.8"]["450.80.02"] == ("jit", "minor")
    assert by_driver["11.8"]["520.61.05"] == ("native", "yes")
    assert by_driver["12.2"]["450.80.02"] == ("refused", "no")
    columns = [*zip(*rows.values(), strict=True)]
    assert all(left != right for left, right in pairwise(columns))


# the picture of layers


def test_a_shared_layer_has_one_place_and_is_counted_once() -> None:
    picture = layer_picture(IMAGES)
    assert picture is not None
    one, two = picture.rows
    assert one.blocks[:2] == two.blocks[:2]
    assert one.blocks[2].x != two.blocks[2].x
    assert [block.kind for block in one.blocks] == ["cuda", "ort", "base"]
    assert (one.total, one.own) == ("2.39 GB", "94.0 MB")
    assert (picture.once, picture.apart) == ("2.48 GB", "4.78 GB")
    assert picture.small == "2 smaller layers, 50.0 kB together"
    shared = next(row for row in picture.layers if row.diff_id == CUDA.diff_id)
    assert shared.images == (ONE, TWO)


def test_blocks_fill_the_width_and_keep_their_proportions() -> None:
    picture = layer_picture(IMAGES)
    assert picture is not None
    blocks = {(block.x, block.width) for row in picture.rows for block in row.blocks}
    assert sum(width for _, width in blocks) == pytest.approx(WIDTH, abs=0.1)
    (cuda, ort) = picture.rows[0].blocks[:2]
    assert cuda.width / ort.width == pytest.approx(1900 / 400, rel=0.01)


def test_images_without_layers_are_no_picture() -> None:
    assert layer_picture({}) is None


# words


def test_sizes_have_three_digits() -> None:
    told = [amount(size) for size in (0, 999, 1_000, 9_994, 94_000_000, 999_600_000, 1_920_000_000)]
    assert told == ["0 B", "999 B", "1.00 kB", "9.99 kB", "94.0 MB", "1.00 GB", "1.92 GB"]


def test_ages_are_counted_to_the_clock_that_is_given() -> None:
    assert [age(MADE, NOW), age(NOW, NOW), age(NOW - timedelta(days=1), NOW)] == ["12 days", "today", "1 day"]
    assert age(NOW + timedelta(days=3), NOW) == "dated in the future"
    (row, base) = report_page(full_facts()).inputs
    assert row.cached == "maven, 153 MB, since 2026-12-01 (12 days)"
    assert row.upstream == "2023-11-08 (1131 days)"
    assert (base.cached, base.pinned) == ("not in the cache", "unresolved")


def test_an_input_is_used_as_the_labels_of_its_images_say() -> None:
    (row, _) = report_page(full_facts()).inputs
    assert "maven" in row.used


def test_labels_of_any_kind_are_read() -> None:
    assert read_origins("ort=maven,cuda=wheel") == {"ort": "maven", "cuda": "wheel"}
    assert read_origins("=,a,b=,=c") == {}
    assert read_time("2026-12-01T12:36:23.382265386Z") is not None
    assert [read_time(text) for text in ("", "soon", "0001-01-01T00:00:00Z", "2026-12-01")] == [None] * 4
    assert unit_name("localhost/ortimg/cuda:11.8-cudnn8-590fd6fcbd75f988") == "cuda 11.8-cudnn8"
    assert unit_name("localhost/ortimg/base-debian13-devel:65b29a26da21d458") == "base debian13-devel"


def test_bars_of_one_shape_have_one_scale_from_zero_on() -> None:
    drawn = plot(BenchFact(source="x.json", target="image", report=bench()))
    first, second = drawn.groups
    assert [row.bars for row in first.rows] == [
        (1000.0, 750.0, 500.0),
        (200.0, 150.0, 100.0),
        (150.0, 112.5, 75.0),
    ]
    assert second.rows[0].bars[0] == 1000.0
    assert [(row.name, row.p50, row.first, row.idle) for row in first.rows[:2]] == [
        ("CPU", "10.0", "-", "-"),
        ("CUDA, copied", "2.000", "1,250", "42 %"),
    ]


def factory(**facts: object) -> FactoryFact:
    rows = (
        RatioFact(title="build and push", ours=100.0, against=500.0, unit="s", value=5.0, of="against / ours",
                  goal=4.0, met=True),
        RatioFact(title="the limit", ours=90.0, against=60.0, unit="s", value=1.5, of="ours / against",
                  goal=1.3, met=False, noisy=True),
        RatioFact(title="pushed", ours=2.0e9, against=8.0e9, unit="bytes", value=0.25, of="ours / against"),
    )  # fmt: skip
    told = {"source": "bench/results/x.json", "date": "2026-12-01T16:00:00Z", "cells": (ONE, TWO)}
    return FactoryFact(**(told | {"machine": "2 cores", "ratios": rows} | facts))  # type: ignore[arg-type]


def test_bars_of_the_factory_are_parts_of_what_they_are_held_against() -> None:
    times, limit, bytes_ = factory_plot(factory()).rows
    assert (times.bar, times.full, times.mark, times.kind) == (200.0, 1000.0, 250.0, "met")
    assert (times.ours, times.against, times.ratio, times.goal) == (
        "100 s",
        "500 s",
        "5.0 times",
        "≥ 4 times",
    )
    assert (limit.bar, limit.full, limit.mark, limit.kind) == (1000.0, 666.7, 866.7, "missed")
    assert limit.noisy
    assert (bytes_.ours, bytes_.against, bytes_.ratio, bytes_.goal) == ("2.00 GB", "8.00 GB", "0.25", "-")
    assert bytes_.mark is None


# the command


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "images.yaml").write_text(
        images(matrix=matrix(["1.16.2"], ["11.8"], ["8"], ["debian12", "debian13"]))
    )
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")  # nothing answers there
    monkeypatch.setenv("ORTIMG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
    return tmp_path


def report(project: Path, *args: str) -> Result:
    return CliRunner().invoke(cli, ["--project", str(project), "report", *args])


def test_the_page_is_written_where_no_engine_answers(project: Path) -> None:
    target = project / "page.html"
    done = report(project, "-o", str(target))
    assert done.exit_code == 0, done.output
    assert "sizes are left out: the container engine does not answer" in done.stderr
    assert done.stdout == ""
    assert tree(target.read_text("utf-8"))[1] == []
    assert "127.0.0.1" not in target.read_text("utf-8")
    assert not (project / "cache").exists()


def test_the_page_is_the_same_each_time(project: Path) -> None:
    first, second = (report(project, "-o", "-", "--no-engine").stdout for _ in range(2))
    assert first == second
    assert 'datetime="2026-11-30"' in first


def test_a_clock_that_is_none_is_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    done = report(project, "-o", "-")
    assert done.exit_code == 2
    assert "SOURCE_DATE_EPOCH" in done.stderr


def test_measurements_are_found_and_named_ones_come_first(project: Path) -> None:
    kept = project / "docs" / "gpu-runs" / "cell"
    kept.mkdir(parents=True)
    (kept / "run.json").write_bytes((RUNS / ONE / "run.json").read_bytes())
    (project / "bench" / "results").mkdir(parents=True)
    (project / "bench" / "results" / "2026-12-01.json").write_text('{"schema": 1, "ratios": {"wall": 4.2}}')
    (project / "bench" / "results" / "cut.json").write_text("{")
    measured = parse_report((RUNS / ONE / "run.json").read_bytes())
    mine = project / "mine.json"
    told = msgspec.structs.replace(measured, bench=bench(), run=msgspec.UNSET)
    mine.write_text(encode(told))
    done = report(project, "-o", "-", "--no-engine", "--bench", str(mine))
    assert done.exit_code == 0, done.output
    text = words(by_id(tree(done.stdout)[0], "bench"))
    assert "NVIDIA H200" in text
    assert "ratios.wall" in text
    assert "from mine.json" in text
    assert str(project) not in done.stdout
    assert "ignored: bench/results/cut.json is no JSON" in done.stderr


def test_the_newest_run_of_the_bench_is_shown_and_earlier_ones_are_named(project: Path) -> None:
    folder = project / "bench" / "results"
    folder.mkdir(parents=True)
    machine = {"cpu": "A CPU", "cores": 2, "memory": 24_000_000_000, "disk_write": 500_000_000, "more": 1}
    for day, seconds in (("2026-11-30", 111.0), ("2026-12-01", 222.0)):
        ratio = {"title": "build <all>", "ours": seconds, "against": 888.0, "unit": "s", "value": 4.0,
                 "of": "against / ours", "goal": 4.0, "met": True, "name": "wall"}  # fmt: skip
        run = {"schema": "ortimg-bench-1", "date": f"{day}T16:00:00Z", "cells": [ONE], "machine": machine}
        (folder / f"{day}.json").write_text(json.dumps(run | {"ratios": [ratio], "measured": {}}))
    (folder / "2026-11-29.json").write_text('{"schema": "ortimg-bench-1"}')
    done = report(project, "-o", "-", "--no-engine")
    text = words(by_id(tree(done.stdout)[0], "bench"))
    assert "222 s" in text
    assert "111 s" not in text
    assert "2 cores of A CPU, 24.0 GB of memory, 500 MB a second to the disk" in text
    assert "from bench/results/2026-12-01.json; earlier: bench/results/2026-11-30.json" in text
    assert "build <all>" in text
    assert "ignored: bench/results/2026-11-29.json is no run of make bench" in done.stderr


def test_a_kept_comparison_is_no_broken_report(project: Path) -> None:
    kept = project / "docs" / "gpu-runs" / "cell"
    kept.mkdir(parents=True)
    (name,) = RUNS.rglob("compare-*.json")
    (kept / name.name).write_bytes(name.read_bytes())
    done = report(project, "-o", "-", "--no-engine")
    assert "ignored" not in done.stderr
    assert "action-needed" in words(by_id(tree(done.stdout)[0], "bench"))


def test_a_long_file_of_numbers_says_what_is_left_out(project: Path) -> None:
    (project / "bench" / "results").mkdir(parents=True)
    (project / "bench" / "results" / "long.json").write_text(json.dumps([*range(1302)]))
    text = words(by_id(tree(report(project, "-o", "-", "--no-engine").stdout)[0], "bench"))
    assert "[299]299" in text
    assert "[300]" not in text
    assert "1,002 more values of the file" in text


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": 1}', '{"findings": 3}'])
def test_a_named_file_without_a_measurement_is_refused(project: Path, text: str) -> None:
    file = project / "x.json"
    file.write_text(text)
    done = report(project, "-o", "-", "--no-engine", "--bench", str(file))
    assert done.exit_code == 2
    assert str(file) in done.stderr


def test_a_named_report_that_measured_nothing_is_refused(project: Path) -> None:
    file = project / "x.json"
    one = parse_report((RUNS / ONE / "run.json").read_bytes())
    empty = Report(target="x", tier=one.tier, verdict=Verdict.PASS, findings=one.findings[:1])
    file.write_text(encode(empty))
    assert report(project, "-o", "-", "--no-engine", "--bench", str(file)).exit_code == 2


def test_sizes_come_from_a_build_that_is_named(project: Path) -> None:
    name = "1.16.2-cuda11.8-cudnn8-debian12"
    file = project / "build.json"
    row = {"identifier": name, "result": "built", "tier": "load", "bytes_total": 2_410_000_000}
    file.write_text(json.dumps({"schema": 1, "cells": [row]}))
    done = report(project, "-o", "-", "--no-engine", "--build", str(file))
    card = words(by_id(tree(done.stdout)[0], f"c-{name}"))
    assert card.endswith("Tier load Size 2.41 GB unpacked, as build.json says")
    file.write_text('{"cells": [{"identifier": 3}]}')
    assert report(project, "-o", "-", "--no-engine", "--build", str(file)).exit_code == 2


def test_pull_commands_go_where_the_images_were_pushed_to(project: Path) -> None:
    done = report(project, "-o", "-", "--no-engine", "--registry-prefix", "registry.example.com/team")
    assert "docker pull registry.example.com/team/r:" in done.stdout


@pytest.mark.parametrize("place", ["absent/page.html", "."])
def test_a_place_that_takes_no_file_is_told(project: Path, place: str) -> None:
    done = report(project, "--no-engine", "-o", str(project / place))
    assert done.exit_code == 2


def test_a_file_that_is_no_page_is_not_overwritten(project: Path) -> None:
    before = (project / "images.yaml").read_bytes()
    done = report(project, "--no-engine", "-o", str(project / "images.yaml"))
    assert done.exit_code == 2
    assert "is no page" in done.stderr
    assert (project / "images.yaml").read_bytes() == before
    for _ in range(2):
        assert report(project, "--no-engine", "-o", str(project / "page.html")).exit_code == 0


def test_a_file_without_an_end_is_not_read_to_its_end(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ortimg.reporting.files._LARGEST", 1000)
    done = report(project, "--no-engine", "--bench", "/dev/zero")
    assert done.exit_code == 2
    assert "too large" in done.stderr


def test_a_record_of_the_project_is_read(project: Path) -> None:
    (project / "verdicts" / DIGEST.removeprefix("sha256:")).mkdir(parents=True)
    (project / "verdicts" / DIGEST.removeprefix("sha256:") / "x.json").write_text("{")
    done = report(project, "-o", "-", "--no-engine")
    assert done.exit_code == 0
    assert "ignored: verdicts/" in done.stderr
