// What Python asks of one table in few calls, each with one text as question and one as answer: a call through
// Py4J takes as long as reading a small file, and a commit took a hundred of them.
//
// It decides nothing. It reads one metadata object, builds on it what it is told to, and hands both to the
// catalog once; Iceberg's own retry is never used (docs/decisions/0002-strict-compare-and-swap.md).
//
// Compiled by Spark's own compiler, Janino, which knows no lambdas and few generics. After a change:
// `make java`.
package esker;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTransaction;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.ContentFileParser;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.HasTableOperations;
import org.apache.iceberg.HistoryEntry;
import org.apache.iceberg.PartitionField;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.SnapshotUpdate;
import org.apache.iceberg.SortOrder;
import org.apache.iceberg.SortOrderParser;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableMetadata;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.io.LocationProvider;
import org.apache.iceberg.relocated.com.google.common.util.concurrent.MoreExecutors;
import org.apache.iceberg.shaded.com.fasterxml.jackson.core.JsonParser;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.types.Types;

public class TableState {
  // Partitions may be NaN or infinite, which JSON proper does not have, and Python writes.
  private static final ObjectMapper JSON =
      new ObjectMapper().configure(JsonParser.Feature.ALLOW_NON_NUMERIC_NUMBERS, true);
  // Iceberg looks every 10 ms whether its threads are done; on a local disk a commit takes less than that.
  private static final ExecutorService HERE = MoreExecutors.newDirectExecutorService();
  private static final String PLAIN_PLACES = "org.apache.iceberg.LocationProviders$DefaultLocationProvider";

  private final Table table;
  private final BaseTransaction transaction;
  private final TableMetadata base;

  public static class Opener {
    // Reads the newest metadata of a table, and begins a transaction on it.
    public TableState open(Table table) {
      return new TableState(table);
    }

    // Describes the metadata that was read last; does not look for newer one.
    public String describe(Table table) throws Exception {
      return described(table, ((HasTableOperations) table).operations().current());
    }
  }

  private TableState(Table table) {
    this.table = table;
    this.transaction = (BaseTransaction) table.newTransaction();
    this.base = this.transaction.startMetadata();
  }

  public BaseTransaction transaction() {
    return transaction;
  }

  public TableMetadata base() {
    return base;
  }

  public String describe() throws Exception {
    return described(table, base);
  }

  private static String described(Table table, TableMetadata metadata) throws Exception {
    Map found = new LinkedHashMap();
    found.put("version", metadata.metadataFileLocation());
    found.put("updated", Long.valueOf(metadata.lastUpdatedMillis()));
    found.put("uuid", metadata.uuid());
    found.put("location", metadata.location());
    found.put("format_version", Integer.valueOf(metadata.formatVersion()));
    found.put("schema_id", Integer.valueOf(metadata.currentSchemaId()));
    found.put("schema", SchemaParser.toJson(metadata.schema()));
    found.put("spec_id", Integer.valueOf(metadata.defaultSpecId()));
    found.put("specs", specs(metadata));
    SortOrder order = metadata.sortOrder();
    found.put("sort", order.isUnsorted() ? null : SortOrderParser.toJson(order));
    found.put("properties", metadata.properties());
    found.put("snapshot", snapshot(metadata.currentSnapshot()));
    found.put("branches", branches(metadata));
    found.put("places", places(table));
    return JSON.writeValueAsString(found);
  }

  private static Map specs(TableMetadata metadata) {
    Map found = new LinkedHashMap();
    for (Iterator each = metadata.specs().iterator(); each.hasNext(); ) {
      PartitionSpec spec = (PartitionSpec) each.next();
      Map one = new LinkedHashMap();
      one.put("spec", PartitionSpecParser.toJson(spec));
      one.put("fields", fields(spec, metadata.schema()));
      found.put(String.valueOf(spec.specId()), one);
    }
    return found;
  }

  private static List fields(PartitionSpec spec, Schema schema) {
    List found = new ArrayList();
    List types = types(spec);
    for (int i = 0; i < spec.fields().size(); i++) {
      PartitionField field = (PartitionField) spec.fields().get(i);
      Map one = new LinkedHashMap();
      one.put("column", schema.findColumnName(field.sourceId()));
      one.put("transform", field.transform().toString());
      one.put("type", types == null ? null : ((Types.NestedField) types.get(i)).type().toString());
      found.add(one);
    }
    return found;
  }

  // A spec of former times may be about columns that are gone: nobody knows their type.
  private static List types(PartitionSpec spec) {
    try {
      return spec.partitionType().fields();
    } catch (RuntimeException gone) {
      return null;
    }
  }

  private static Map snapshot(Snapshot snapshot) {
    if (snapshot == null) {
      return null;
    }
    Map found = new LinkedHashMap();
    found.put("id", Long.valueOf(snapshot.snapshotId()));
    found.put("parent", snapshot.parentId());
    found.put("sequence", Long.valueOf(snapshot.sequenceNumber()));
    found.put("moment", Long.valueOf(snapshot.timestampMillis()));
    found.put("operation", snapshot.operation());
    found.put("summary", snapshot.summary());
    found.put("schema_id", snapshot.schemaId());
    found.put("manifest_list", snapshot.manifestListLocation());
    return found;
  }

  private static List branches(TableMetadata metadata) {
    List found = new ArrayList();
    for (Iterator each = metadata.refs().entrySet().iterator(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      if (((SnapshotRef) entry.getValue()).isBranch()) {
        found.add(entry.getKey());
      }
    }
    return found;
  }

  // The folder that files without a partition lie in by their names alone, if there is one.
  private static String places(Table table) {
    LocationProvider provider;
    try {
      provider = table.locationProvider();
    } catch (RuntimeException unknown) {
      return null; // who only reads needs none; who writes is told why
    }
    if (provider == null || !PLAIN_PLACES.equals(provider.getClass().getName())) {
      return null;
    }
    String place = provider.newDataLocation("file");
    return place.substring(0, place.length() - "file".length());
  }

  // Describes the snapshot that was current at a moment, in milliseconds since 1970; null if none is known.
  public String snapshotAt(long moment) throws Exception {
    Snapshot newest = null;
    for (Iterator each = base.snapshotLog().iterator(); each.hasNext(); ) {
      HistoryEntry entry = (HistoryEntry) each.next();
      if (entry.timestampMillis() <= moment) {
        newest = base.snapshot(entry.snapshotId());
      }
    }
    return newest == null ? null : JSON.writeValueAsString(snapshot(newest));
  }

  // Returns where new files are to lie: a list of names, each with a file in the same partition.
  public String locations(String request) throws Exception {
    List found = new ArrayList();
    LocationProvider provider = table.locationProvider();
    for (Iterator each = JSON.readTree(request).elements(); each.hasNext(); ) {
      JsonNode one = (JsonNode) each.next();
      String name = one.get("name").asText();
      if (one.has("beside")) {
        PartitionSpec spec = spec(one.get("beside"));
        StructLike values = file(one.get("beside")).partition();
        found.add(provider.newDataLocation(spec, values, name));
      } else {
        found.add(provider.newDataLocation(name));
      }
    }
    return JSON.writeValueAsString(found);
  }

  private PartitionSpec spec(JsonNode file) {
    return base.spec(file.get("spec-id").asInt());
  }

  private ContentFile file(JsonNode document) {
    return ContentFileParser.fromJson(document, spec(document));
  }

  public String append(String request) throws Exception {
    return append(request, new ArrayList());
  }

  // Adds files to the transaction: those of the request, and others that are Iceberg's objects already.
  public String append(String request, List others) throws Exception {
    JsonNode asked = JSON.readTree(request);
    AppendFiles change = transaction.newAppend();
    for (Iterator each = asked.get("added").elements(); each.hasNext(); ) {
      change.appendFile((DataFile) file((JsonNode) each.next()));
    }
    for (Iterator each = others.iterator(); each.hasNext(); ) {
      change.appendFile((DataFile) each.next());
    }
    return built((SnapshotUpdate) change, asked);
  }

  public String rowDelta(String request) throws Exception {
    return rowDelta(request, new ArrayList());
  }

  public String rowDelta(String request, List others) throws Exception {
    JsonNode asked = JSON.readTree(request);
    RowDelta change = transaction.newRowDelta();
    for (Iterator each = asked.get("added").elements(); each.hasNext(); ) {
      change.addRows((DataFile) file((JsonNode) each.next()));
    }
    for (Iterator each = others.iterator(); each.hasNext(); ) {
      change.addRows((DataFile) each.next());
    }
    for (Iterator each = asked.get("deletes").elements(); each.hasNext(); ) {
      change.addDeletes((DeleteFile) file((JsonNode) each.next()));
    }
    for (Iterator each = asked.get("removed").elements(); each.hasNext(); ) {
      change.removeDeletes((DeleteFile) file((JsonNode) each.next()));
    }
    if (asked.hasNonNull("since")) {
      change.validateFromSnapshot(asked.get("since").asLong());
    }
    List present = new ArrayList();
    for (Iterator each = asked.get("present").elements(); each.hasNext(); ) {
      present.add(((JsonNode) each.next()).asText());
    }
    change.validateDataFilesExist(present);
    change.validateDeletedFiles();
    change.conflictDetectionFilter(Expressions.alwaysTrue());
    change.validateNoConflictingDataFiles();
    change.validateNoConflictingDeleteFiles();
    return built((SnapshotUpdate) change, asked);
  }

  private String built(SnapshotUpdate change, JsonNode asked) throws Exception {
    for (Iterator each = asked.get("summary").fields(); each.hasNext(); ) {
      Map.Entry entry = (Map.Entry) each.next();
      change.set((String) entry.getKey(), ((JsonNode) entry.getValue()).asText());
    }
    if (asked.get("is_local").asBoolean()) {
      change.scanManifestsWith(HERE);
    }
    String branch = asked.hasNonNull("branch") ? asked.get("branch").asText() : null;
    if (branch != null) {
      change.toBranch(branch);
    }
    change.commit(); // into the transaction, not into the catalog
    TableMetadata metadata = transaction.currentMetadata();
    Snapshot made = metadata.currentSnapshot();
    if (branch != null) {
      made = metadata.snapshot(metadata.ref(branch).snapshotId());
    }
    return JSON.writeValueAsString(snapshot(made));
  }

  // Sets properties and asks the catalog, once, to put what was built in the place of what was read.
  public void swap(String request) throws Exception {
    JsonNode asked = JSON.readTree(request);
    if (asked.get("properties").size() > 0) {
      UpdateProperties update = transaction.updateProperties();
      for (Iterator each = asked.get("properties").fields(); each.hasNext(); ) {
        Map.Entry entry = (Map.Entry) each.next();
        update.set((String) entry.getKey(), ((JsonNode) entry.getValue()).asText());
      }
      update.commit();
    }
    TableMetadata built = transaction.currentMetadata();
    Collection gone = new HashSet();
    for (Iterator each = asked.get("forgotten").elements(); each.hasNext(); ) {
      long snapshot = ((JsonNode) each.next()).asLong();
      if (built.snapshot(snapshot) != null) {
        gone.add(Long.valueOf(snapshot));
      }
    }
    if (!gone.isEmpty()) {
      built = TableMetadata.buildFrom(built).removeSnapshots(gone).build();
    }
    ((HasTableOperations) table).operations().commit(base, built);
  }
}
