"""Local files as they are: no checksum file beside each, and no process started for each.

Without Hadoop's native library, which PySpark does not bring along, Hadoop starts the program `chmod` for
every file that it creates. A commit writes half a dozen files. Java sets permissions by itself.
"""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

from esker.engine.failures import JvmFailure

_NAME = "esker.PlainLocalFileSystem"
_SOURCE = """
package esker;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class PlainLocalFileSystem extends LocalFileSystem {
  public PlainLocalFileSystem() {
    super(new Raw());
  }

  public static class Raw extends RawLocalFileSystem {
    public void setPermission(Path path, FsPermission permission) throws IOException {
      java.nio.file.Path file = pathToFile(path).toPath();
      LinkOption[] links = new LinkOption[0];
      // Like the program: a folder that hands its group on to what is made in it goes on doing so.
      int kept = 0;
      if (Files.isDirectory(file, links)) {
        kept = ((Integer) Files.getAttribute(file, "unix:mode", links)).intValue() & 06000;
      }
      Files.setAttribute(file, "unix:mode", Integer.valueOf(kept | permission.toShort()), links);
    }
  }
}
"""


def use_plain_files(context: SparkContext) -> None:
    """Let Hadoop write local files without a process or a checksum file for each.

    Checksum files double the number of files, and cannot stand beside one whose name holds a colon, as
    times of day do. Said for each session: Hadoop may have made its local file system anew since.
    """
    jvm: Any = context._jvm
    java_context: Any = context._jsc
    conf = java_context.hadoopConfiguration()
    local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf)
    if local.getClass().getName() != _NAME:
        local = _installed(jvm, conf, local)
    local.setVerifyChecksum(False)
    local.setWriteChecksum(False)


def _installed(jvm: Any, conf: Any, former: Any) -> Any:
    """Put the own file system into Hadoop's cache, where everybody finds it; or return the former one."""
    try:
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(conf.getClassLoader())
        compiler.cook(_SOURCE)
        # Only in a configuration of its own: another one, without the class, must find Hadoop's.
        own = jvm.org.apache.hadoop.conf.Configuration(conf)
        own.set("fs.file.impl", _NAME)
        own.setClassLoader(compiler.getClassLoader())
        former.close()  # takes it out of the cache
        return jvm.org.apache.hadoop.fs.FileSystem.getLocal(own)
    except JvmFailure:
        # Slower, and as right: a Spark without this compiler, or with other file systems.
        return jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf)
