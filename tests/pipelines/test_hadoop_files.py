"""Files over Hadoop: the real local file system, and one that says no as HDFS does."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from headrace.pipelines.errors import SinkError
from headrace.pipelines.hadoop_files import HadoopFiles, TakenError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FakePath:
    """`org.apache.hadoop.fs.Path`, as much of it as is used."""

    system: "FakeSystem"

    def __init__(self, parent: "FakePath | str", name: str = "") -> None:
        self.text = f"{parent}/{name}" if name else str(parent)

    def __str__(self) -> str:
        return self.text

    def toString(self) -> str:  # noqa: N802 - Java's name
        return self.text

    def toUri(self) -> Any:  # noqa: N802
        return SimpleNamespace(getScheme=lambda: "hdfs", getPath=lambda: self.text)

    def getFileSystem(self, conf: object) -> "FakeSystem":  # noqa: N802
        return self.system


class FakeSystem:
    """A file system that gives `false` for a reason, as HDFS does, or for none."""

    def __init__(self) -> None:
        self.files = dict[str, bytes]()
        self.is_refusing = False

    def makeQualified(self, path: FakePath) -> FakePath:  # noqa: N802
        return path

    def exists(self, path: FakePath) -> bool:
        return any(name == str(path) or name.startswith(f"{path}/") for name in self.files)

    def create(self, path: FakePath, is_replacing: bool) -> Any:
        def write(content: bytearray) -> None:
            self.files[str(path)] = bytes(content)

        return SimpleNamespace(write=write, close=lambda: None)

    def open(self, path: FakePath) -> Any:
        return SimpleNamespace(readAllBytes=lambda: self.files[str(path)], close=lambda: None)

    def rename(self, source: FakePath, target: FakePath) -> bool:
        if self.is_refusing or str(source) not in self.files or str(target) in self.files:
            return False
        self.files[str(target)] = self.files.pop(str(source))
        return True

    def delete(self, path: FakePath, is_recursive: bool) -> bool:
        names = [name for name in self.files if name == str(path) or name.startswith(f"{path}/")]
        if self.is_refusing or not names:
            return False
        for name in names:
            del self.files[name]
        return True

    def mkdirs(self, path: FakePath) -> bool:
        return not self.is_refusing


@pytest.fixture
def system() -> FakeSystem:
    FakePath.system = FakeSystem()
    return FakePath.system


@pytest.fixture
def refusing(system: FakeSystem) -> HadoopFiles:
    """The directory of a file system that was asked whether it is there, and now refuses."""
    fs = SimpleNamespace(Path=FakePath)
    jvm = SimpleNamespace(
        org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=fs)))
    )
    state = SimpleNamespace(newHadoopConf=lambda: None)
    spark: Any = SimpleNamespace(
        _jvm=jvm, _jsparkSession=SimpleNamespace(sessionState=lambda: state)
    )
    return HadoopFiles(spark, "hdfs://there/lake")


def test_a_false_without_a_reason_is_an_error_that_names_the_file(
    system: FakeSystem, refusing: HadoopFiles
) -> None:
    system.files = {"hdfs://there/lake/a": b"1"}
    system.is_refusing = True

    with pytest.raises(SinkError, match="cannot rename hdfs://there/lake/a: the file system"):
        refusing.rename("a", "b")
    with pytest.raises(SinkError, match="cannot delete hdfs://there/lake/a: the file system"):
        refusing.delete("a")
    with pytest.raises(SinkError, match="cannot make hdfs://there/lake/d: the file system"):
        refusing.make_directory("d")
    with pytest.raises(SinkError, match="cannot rename hdfs://there/lake/_note"):
        refusing.write_whole("note", "text")


def test_a_false_because_the_name_is_taken_or_nothing_is_there_is_an_answer(
    system: FakeSystem, refusing: HadoopFiles
) -> None:
    system.files = {"hdfs://there/lake/a": b"1", "hdfs://there/lake/b": b"2"}

    assert not refusing.rename("a", "b")
    assert not refusing.rename("nothing", "c")
    refusing.delete("nothing")
    with pytest.raises(TakenError, match="hdfs://there/lake/b is there already"):
        refusing.write_whole("b", "other")
    assert refusing.rename("a", "c")
    refusing.write_whole("d", "text")
    assert system.files == {
        "hdfs://there/lake/b": b"2",
        "hdfs://there/lake/c": b"1",
        "hdfs://there/lake/d": b"text",
    }


@pytest.mark.parametrize("is_quicker", [True, False])
def test_who_loses_a_race_between_looking_and_renaming_is_told_so(
    system: FakeSystem,
    refusing: HadoopFiles,
    monkeypatch: pytest.MonkeyPatch,
    is_quicker: bool,
) -> None:
    real = system.rename

    def rename(source: FakePath, target: FakePath) -> bool:
        if is_quicker:
            system.files[str(target)] = b"theirs"
        else:
            del system.files[str(source)]
        return real(source, target)

    monkeypatch.setattr(system, "rename", rename)

    with pytest.raises(TakenError):
        refusing.write_whole("note", "ours")
    assert system.files == ({"hdfs://there/lake/note": b"theirs"} if is_quicker else {})


@pytest.mark.spark
def test_hadoops_own_local_file_system_does_the_same(spark: "SparkSession", tmp_path: Path) -> None:
    files = HadoopFiles(spark, str(tmp_path))

    files.write_whole("d/note", "one")
    with pytest.raises(TakenError):
        files.write_whole("d/note", "two")
    assert files.read("d/note") == "one"
    files.write_whole("d/other", "three")
    assert not files.rename("d/note", "d/other")
    assert not files.rename("d/nothing", "d/new")
    assert [entry.name for entry in files.list("d")] == ["note", "other"]
    with pytest.raises(SinkError, match="cannot make"):
        files.make_directory("d/note/below-a-file")
    files.delete("d/nothing")
    files.delete("d")
    assert not files.exists("d")


@pytest.mark.spark
def test_a_local_name_is_taken_in_one_step(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = HadoopFiles(spark, str(tmp_path))
    real = HadoopFiles._draft

    def draft(self: HadoopFiles, name: str, text: str) -> str:
        """Be slow enough for another."""
        made = real(self, name, text)
        (tmp_path / name).write_text("theirs")
        return made

    monkeypatch.setattr(HadoopFiles, "_draft", draft)

    with pytest.raises(TakenError):
        files.write_whole("note", "ours")
    assert (tmp_path / "note").read_text() == "theirs"
    assert [entry.name for entry in files.list()] == ["note"]
