"""Java's archive of classes: those that a first run loads, as Java keeps them ready for the next one.

Half of what a short run waits for is Java reading, verifying and linking classes of Spark and Iceberg. An
archive lies in the cache beside the jars, one for each Java, Spark and set of jars. Java writes it when it
ends, after Esker's own process, so that nobody waits for it; until the file has its name there is none. When
Java starts it compares versions, jars and flags with those of the archive, and passes over one that does not
fit. So an archive makes a start faster or changes nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark

from esker.engine.cache import cache_folder
from esker.engine.failures import JvmFailure
from esker.engine.java import Java

_OTHERS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")
"""Variables from which Java, or Spark's launcher, takes further options."""
_QUIET = "-Xlog:cds*=off"
"""Java would write a line into the log for each class that it leaves out."""
_KEPT = 8
"""How many archives are kept; each has some 200 MB. Each catalog with jars of its own has one."""
_ROOM = 500_000_000
"""Bytes that are free when an archive is begun."""
_DAY = 86_400
_TRIED = ".tried"
"""The end of the name of a file that says why an archive could not be made. A day later it is tried again."""
_OWN_ARCHIVE = re.compile(r"-Xshare|SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile|-XX:AOT")
_OF_NO_MATTER = re.compile(r"-D|-Xlog|-Xm[nsx]|-Xss|-XX:(?:[+-]Use\w+GC|TieredStopAtLevel|\w+CodeCacheSize)")
"""Options with which Java takes the same archive."""
_PLACES = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_CONF_DIR")
"""Variables that Spark's launcher adds to the class path."""
_NAME = "esker.KeptClasses"
_SOURCE = """
package esker;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.file.CopyOption;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import javax.management.ObjectName;

public class KeptClasses extends Thread {
  private final File made;
  private final File kept;
  private final File tried;

  public KeptClasses(String made, String kept, String tried) {
    this.made = new File(made);
    this.kept = new File(kept);
    this.tried = new File(tried);
  }

  public void run() {
    try {
      // A process that is killed here leaves this behind: the next runs do not try the same.
      tell("not made to its end");
      Object[] arguments = new Object[] {new String[] {"dynamic_dump", made.getPath()}};
      String[] types = new String[] {String[].class.getName()};
      ObjectName commands = new ObjectName("com.sun.management:type=DiagnosticCommand");
      Object told = ManagementFactory.getPlatformMBeanServer().invoke(commands, "vmCds", arguments, types);
      if (!made.exists()) {
        throw new IllegalStateException(String.valueOf(told));
      }
      // What has a name must be whole, even if the machine stops now.
      FileChannel file = FileChannel.open(made.toPath(), new OpenOption[] {StandardOpenOption.READ});
      file.force(true);
      file.close();
      Files.move(made.toPath(), kept.toPath(), new CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
      tried.delete();
    } catch (Throwable error) {
      made.delete();
      try {
        tell(error.toString());
      } catch (Throwable unwritten) {
        // The first word stays.
      }
    }
  }

  private void tell(String why) throws Exception {
    Files.write(tried.toPath(), why.getBytes("UTF-8"), new OpenOption[0]);
  }
}
"""

_wanted: Path | None = None
"""The archive that this process's Java can make, until it has been told to."""


def others_options() -> str:
    """Return the options that Java gets from variables of the environment."""
    return " ".join(filter(None, (os.environ.get(name) for name in _OTHERS)))


def archive_of(java: Java, jars: Sequence[Path], options: str) -> Path:
    """Return where the archive for a Java with these jars and a user's options lies, there or not."""
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    # Java takes an archive only for jars that lie where they did and have not been touched.
    seen = [f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}" for jar in (*jars, *spark)]
    given = [each for each in _split(f"{options} {others_options()}") if not _OF_NO_MATTER.match(each)]
    places = [os.environ.get(name, "") for name in _PLACES]
    facts = "\n".join([java.build, str(java.home), *given, *places, *seen])
    return cache_folder() / "classes" / f"{hashlib.sha256(facts.encode()).hexdigest()[:16]}.jsa"


def use_or_make(archive: Path, options: str) -> str:
    """Return what to tell Java: to use the archive, or to be ready to make it; nothing where it cannot."""
    global _wanted  # noqa: PLW0603 (as there is one Java in a process)
    _wanted = None
    if _OWN_ARCHIVE.search(f"{options} {others_options()}") or ":" in str(archive):
        return ""  # the user configured an archive; a colon would separate two files
    if archive.is_file():
        with suppress(OSError):  # a cache that only others may write to
            os.utime(archive)  # those that nobody uses are removed first
        return f"-XX:SharedArchiveFile={shlex.quote(str(archive))} {_QUIET}"
    if _is_recent(archive.with_suffix(_TRIED)) or not _has_room(archive.parent):
        return ""
    _wanted = archive
    return f"-XX:+RecordDynamicDumpInfo {_QUIET}"


def make_at_end(context: Any) -> None:
    """Let this process's Java write the archive when it ends, if there is none yet. Called after a load."""
    global _wanted
    archive, _wanted = _wanted, None
    if archive is None or archive.exists():
        return
    jvm = context._jvm
    with suppress(OSError, *JvmFailure):  # as slow as before, and as right
        archive.parent.mkdir(parents=True, exist_ok=True)
        _tidy(archive.parent)
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_SOURCE)
        made = archive.with_name(f".{archive.stem}-{os.getpid()}")
        names = [str(made), str(archive), str(archive.with_suffix(_TRIED))]
        [constructor] = compiler.getClassLoader().loadClass(_NAME).getConstructors()
        given = context._gateway.new_array(jvm.java.lang.Object, len(names))
        for place, name in enumerate(names):
            given[place] = name
        jvm.java.lang.Runtime.getRuntime().addShutdownHook(constructor.newInstance(given))


def _tidy(folder: Path) -> None:
    """Remove the archives that were used longest ago, and what killed processes have left behind."""
    archives = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    leftovers = [path for path in (*folder.glob(".*"), *folder.glob(f"*{_TRIED}")) if not _is_recent(path)]
    for path in (*archives[_KEPT - 1 :], *leftovers):
        path.unlink(missing_ok=True)


def _is_recent(path: Path) -> bool:
    """Tell whether a file is there, and not older than a day."""
    try:
        return path.stat().st_mtime > time.time() - _DAY
    except OSError:
        return False


def _has_room(folder: Path) -> bool:
    """Tell whether an archive can be written, as far as can be told: the folder may not be there yet."""
    try:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        return there.is_dir() and os.access(there, os.W_OK) and shutil.disk_usage(there).free > _ROOM
    except OSError:
        return False


def _split(options: str) -> list[str]:
    try:
        return shlex.split(options)
    except ValueError:
        return options.split()
