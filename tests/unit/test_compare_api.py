"""onnxruntime_c_api.h read as text, and sources compiled against headers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ortimg.comparing.compiling import compile_source, placed
from ortimg.core.compare_api import read_headers
from ortimg.errors import ConfigError

HEADER = r"""
// #define ORT_API_VERSION 99
#define ORT_API_VERSION 17 /* of 1.17 */
struct OrtApiBase { const OrtApi*(ORT_API_CALL* GetApi)(uint32_t version); };
struct OrtApi {
  /** \brief Create; see struct OrtApi { } */
  OrtStatus*(ORT_API_CALL* CreateStatus)(OrtErrorCode code, _In_ const char* msg)NO_EXCEPTION;
  // removed: ORT_API2_STATUS(Ghost, int);
  ORT_API2_STATUS(CreateEnv, OrtLoggingLevel level,
                  _Outptr_ OrtEnv** out);
  ORT_CLASS_RELEASE(Env)
  ORT_CLASS_RELEASE(Status);
#ifdef __cplusplus
  OrtApi(const OrtApi&) = delete;
#endif
  void(ORT_API_CALL* ReleaseThing)(_Frees_ptr_opt_ OrtThing* input);
};
struct OrtModelApi { ORT_API2_STATUS(NotOurs, int a); };
"""
needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def test_the_functions_in_their_order() -> None:
    found = read_headers(HEADER)
    assert found.version == 17
    assert found.functions is not None
    assert [one.name for one in found.functions] == [
        "CreateStatus", "CreateEnv", "ReleaseEnv", "ReleaseStatus", "ReleaseThing",
    ]  # fmt: skip
    assert (
        found.functions[1].signature
        == "ORT_API2_STATUS(CreateEnv, OrtLoggingLevel level, _Outptr_ OrtEnv** out)"
    )


@pytest.mark.parametrize(
    "text", ["", "struct OrtApi", "struct OrtApi {", "#define ORT_API_VERSION x", "\0" * 9]
)
def test_a_header_that_says_nothing(text: str) -> None:
    found = read_headers(text)
    assert found.version is None
    assert not found.functions


@given(st.text(alphabet="struct OrtApi{}();*/ \n#ORT_CLASS_RELEASEX2_US", max_size=200))
def test_any_text_is_read(text: str) -> None:
    read_headers(text)


# compiling

OLD = {"a/onnxruntime_c_api.h": b"typedef struct OrtApi { int (*Run)(int); int (*Gone)(void); } OrtApi;\n"}
NEW = {"a/onnxruntime_c_api.h": b"typedef struct OrtApi { int (*Run)(int); } OrtApi;\n"}


def compiled(source: str, folder: Path, name: str = "app.c") -> tuple[tuple[str, ...] | None, ...]:
    path = folder / name
    path.write_text(source)
    with placed(OLD, "a") as old, placed(NEW, "a") as new:
        found = compile_source(path, old, new, "the release archive")
    return found.old, found.new


@needs_cc
@pytest.mark.parametrize("include", ["<onnxruntime_c_api.h>", "<onnxruntime/onnxruntime_c_api.h>"])
def test_a_function_that_is_gone(tmp_path: Path, include: str) -> None:
    old, new = compiled(f"#include {include}\nint f(OrtApi *a) {{ return a->Gone(); }}\n", tmp_path)
    assert old == ()
    assert new is not None and len(new) == 1
    assert new[0].startswith("app.c:2:") and "Gone" in new[0]  # no folder of this machine


@needs_cc
def test_a_source_that_never_compiled_has_the_same_errors_twice(tmp_path: Path) -> None:
    old, new = compiled('#include "mine.h"\n', tmp_path)
    assert old and old == new


@needs_cc
def test_headers_beside_the_source_are_found(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("#define N 3\n")
    assert compiled('#include "mine.h"\nint n = N;\n', tmp_path) == ((), ())


def test_without_headers_nothing_is_compiled(tmp_path: Path) -> None:
    path = tmp_path / "app.c"
    path.write_text("")
    found = compile_source(path, None, None, "the release archive")
    assert (found.new, found.why_not, found.cure) == (
        None,
        "NEW has no headers",
        "its headers are in the release archive",
    )
    with pytest.raises(ConfigError, match="there is no file"):
        compile_source(tmp_path / "no.c", None, None, "")


@needs_cc
def test_a_source_of_any_name_is_compiled(tmp_path: Path) -> None:
    _, new = compiled("this is no C\n", tmp_path, "notes.txt")
    assert new
