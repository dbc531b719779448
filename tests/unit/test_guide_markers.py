"""Reading pages of the guide: what a marker says, and that a page which breaks a rule does not pass."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from guide import Kind, Marker, output_matches, read_marker, read_page, record_fault
from guide_prose import anchors, dead_links, differences, in_order

PAGE = """\
# A page

<!-- file: main.cpp -->
```cpp
int main() {}
```

<!-- run: image=onnxruntime-gpu:1.16.2 user=10001:10001 root=ro exit=3 -->
```sh
g++ main.cpp
```

<!-- output -->
```text
…
done in … s
```

<!-- not run: this needs a GPU -->
```sh
docker run --gpus all x
```

```text
words
```
"""


def faults(text: str) -> list[str]:
    return [*read_page(Path("page.md"), text).faults]


def test_a_page_is_read() -> None:
    page = read_page(Path("docs/guide/page.md"), PAGE)
    assert page.faults == ()
    assert page.name == "page"
    assert page.twin == Path("docs/guide/page.zh.md")
    assert [(step.block.line, step.marker) for step in page.steps] == [
        (5, Marker(Kind.FILE, "main.cpp")),
        (10, Marker(Kind.IMAGE, "onnxruntime-gpu:1.16.2", "10001:10001", read_only=True, exit=3)),
        (21, Marker(Kind.NOT_RUN, "this needs a GPU")),
    ]
    assert page.steps[1].output is not None
    assert page.steps[1].output.text == "…\ndone in … s\n"


@pytest.mark.parametrize(
    ("comment", "marker"),
    [
        ("run: host", Marker(Kind.HOST)),
        ("run: host exit=1", Marker(Kind.HOST, exit=1)),
        ("run: host always", Marker(Kind.HOST, always=True)),
        ("run: image=debian:12 keep", Marker(Kind.IMAGE, "debian:12", keep=True)),
        ("file: src/main.cpp", Marker(Kind.FILE, "src/main.cpp")),
        ("output", Marker(Kind.OUTPUT)),
        ("gpu: docs/gpu-runs/a/b.json", Marker(Kind.GPU, "docs/gpu-runs/a/b.json")),
        ("gpu: not yet run", Marker(Kind.GPU_NOT_YET)),
    ],
)
def test_every_marker_is_known(comment: str, marker: Marker) -> None:
    assert read_marker(comment) == marker


@pytest.mark.parametrize(
    "comment",
    [
        "",
        "runs: host",
        "run:",
        "run: everywhere",
        "run: image=",
        "run: image=a user=root",
        "run: image=a root=rw",
        "run: image=a network=host",
        "run: image=a exit=1 exit=2",
        "run: host user=1:1",
        "run: host exit=no",
        "run: host always=1",
        "run: image=a always",
        "file: /etc/passwd",
        "file: ../x",
        "file: two words",
        "gpu: somewhere",
        "gpu: /etc/docs/gpu-runs/x",
        "gpu: docs/gpu-runs/../gpu.md",
        "not run:",
        "TODO",
    ],
)
def test_no_other_marker_is_taken(comment: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_marker(comment)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("<!-- not run: this needs a GPU -->\n", "", "20: a block of sh has no marker"),
        ("<!-- not run: this needs a GPU -->", "<!-- not run: this needs a GPU -->\n", "19: no block stands"),
        ("not run: this needs a GPU", "skipped", '21: "skipped" is no marker'),
        ("g++ main.cpp", "g++ other.cpp", "5: no block below uses main.cpp"),
        ("```sh\ng++", "```cpp\ng++", "10: a block of cpp cannot be run there"),
        ("```text\nwords", "```\nwords", '25: "" is no language'),
        ("```text\nwords", "```powershell\nwords", '25: "powershell" is no language'),
        ("<!-- output -->", "Words.\n\n<!-- output -->", "17: an output stands directly below"),
        (
            "```text\nwords",
            "<!-- output -->\n```text\nwords\n```\n\n<!-- output -->\n```text\n",
            "31: an output",
        ),
        ("```text\nwords\n```", "  ```sh\n  rm\n  ```", "24: a fence is three backticks"),
        ("```text\nwords\n```", "~~~sh\nrm\n~~~", "24: a fence is three backticks"),
        ("```text\nwords\n```", "```sh\nrm\n", "24: a fence is three backticks"),
    ],
)
def test_a_page_that_breaks_a_rule_has_the_fault_and_its_line(old: str, new: str, fault: str) -> None:
    assert PAGE.count(old) == 1
    found = faults(PAGE.replace(old, new))
    assert any(each.startswith(fault) for each in found), found


FILES = """\
<!-- file: CMakeLists.txt -->
```cmake
add_executable(program main.cpp)
```

<!-- file: main.cpp -->
```cpp
int main() {}
```

<!-- run: image=a -->
```sh
cmake -B build
```
"""


def test_a_file_is_used_by_a_file_that_is_used() -> None:
    assert faults(FILES) == []
    assert faults(FILES.replace("cmake -B", "ls")) != []


def test_a_file_must_be_used_below_it() -> None:
    head, run = FILES.split("<!-- run", 1)
    assert any("uses main.cpp" in fault for fault in faults("<!-- run" + run + "\n" + head))


@pytest.mark.parametrize(
    ("shown", "said", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a \nb", True),
        ("a\n", "a\nb\n", False),
        ("…\nb\n", "a\na\nb\n", True),
        ("…\nb\n", "b\n", True),
        ("a\n…\n", "a\n", True),
        ("a\n…\nb\n", "a\nc\n", False),
        ("took … s\n", "took 1.5 s\n", True),
        ("took … s\n", "took 1.5\n s\n", False),
        ("(a.*)\n", "(abc)\n", False),
    ],
)
def test_outputs_are_compared(shown: str, said: str, same: bool) -> None:
    assert output_matches(shown, said) is same


@pytest.mark.parametrize(
    ("name", "held", "right"),
    [
        ("run.json", json.dumps({"runs": [{"command": "nvidia-smi -L\n", "output": "a\nGPU 0: H\n"}]}), True),
        ("run.json", json.dumps({"command": "nvidia-smi", "output": "GPU 0: H"}), False),
        ("run.json", json.dumps({"command": "nvidia-smi -L", "output": "no devices"}), False),
        ("run.json", json.dumps({"command": "nvidia-smi -L"}), False),
        ("run.txt", "$ nvidia-smi -L\nGPU 0: H\n", True),
        ("run.txt", "GPU 0: H\n$ nvidia-smi -L\n", False),
        ("other.txt", "$ nvidia-smi -L\nGPU 0: H\n", False),
    ],
)
def test_a_record_holds_the_command_and_what_it_printed(
    tmp_path: Path, name: str, held: str, right: bool
) -> None:
    file = "docs/gpu-runs/a/run" + Path(name).suffix
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / "docs/gpu-runs/a" / name).write_text(held)
    text = f"<!-- gpu: {file} -->\n```sh\nnvidia-smi -L\n```\n\n<!-- output -->\n```text\nGPU 0: …\n```\n"
    (step,) = read_page(Path("page.md"), text).steps
    assert (record_fault(step, tmp_path) is None) is right


def test_a_page_whose_record_is_not_there_has_that_fault() -> None:
    text = "<!-- gpu: docs/gpu-runs/none/none.json -->\n```sh\nnvidia-smi\n```\n"
    assert faults(text) == ["3: there is no docs/gpu-runs/none/none.json"]


def test_links_and_anchors(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text(
        "# One `two`, three\n\n## A\n\n## A\n\n## 为什么 GPU\n\n```sh\n# none\n```\n"
    )
    assert anchors((tmp_path / "other.md").read_text()) == {"one-two-three", "a", "a-1", "为什么-gpu"}
    page = tmp_path / "page.md"
    good = "[a](other.md#a-1) [b](other.md) [c](https://example.com/x) [d](#here) `[e](gone.md)`\n# Here\n"
    assert [*dead_links(page, good)] == []
    bad = "[a](other.md#b)\n\n[b](gone.md) [c](#none)\n"
    assert [each.split(": ")[0] for each in dead_links(page, bad)] == ["1", "3", "3"]


TWIN = PAGE.replace("# A page", "# 一页")


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("# 一页", "# 一页 (GPU)", False),
        ("# 一页", "## 一页", True),
        ("# 一页", "# 一页\n\n## 又一节", True),
        ("exit=3", "exit=2", True),
        ("g++ main.cpp", "g++  main.cpp", True),
        ("```text\nwords\n```", "", True),
    ],
)
def test_a_twin_has_the_same_sections_blocks_and_markers(old: str, new: str, found: bool) -> None:
    twin = read_page(Path("page.zh.md"), TWIN.replace(old, new))
    assert bool([*differences(read_page(Path("page.md"), PAGE), twin)]) is found


def test_the_index_has_an_order() -> None:
    assert in_order("[a](a.md) [b](b.md)", ["a.md", "b.md"])
    assert not in_order("[b](b.md) [a](a.md)", ["a.md", "b.md"])
    assert not in_order("[a](a.md)", ["a.md", "b.md"])
