-- A record of the API as the table has it. What belongs to a bib is a map by id, and empty where there is none;
-- `data` keeps each of them as the API wrote it.
SELECT
  id,
  CASE WHEN bib IS NOT NULL THEN named_struct(
    'id', get_json_object(bib, '$.id'),
    'data', bib,
    'modified_date', get_json_object(bib, '$.updatedDate')
  ) END AS maybe_bib_record,
  map_from_entries(transform(coalesce(items, array()), record -> struct(
    get_json_object(record, '$.id'),
    named_struct(
      'id', get_json_object(record, '$.id'),
      'data', record,
      'modified_date', get_json_object(record, '$.updatedDate'),
      'bib_ids', from_json(get_json_object(record, '$.bibIds'), 'array<string>'),
      'unlinked_bib_ids', from_json(get_json_object(record, '$.unlinkedBibIds'), 'array<string>')
    )
  ))) AS item_records,
  map_from_entries(transform(coalesce(holdings, array()), record -> struct(
    get_json_object(record, '$.id'),
    named_struct(
      'id', get_json_object(record, '$.id'),
      'data', record,
      'modified_date', get_json_object(record, '$.updatedDate'),
      'bib_ids', from_json(get_json_object(record, '$.bibIds'), 'array<string>'),
      'unlinked_bib_ids', from_json(get_json_object(record, '$.unlinkedBibIds'), 'array<string>')
    )
  ))) AS holdings_records,
  map_from_entries(transform(coalesce(orders, array()), record -> struct(
    get_json_object(record, '$.id'),
    named_struct(
      'id', get_json_object(record, '$.id'),
      'data', record,
      'modified_date', get_json_object(record, '$.updatedDate'),
      'bib_ids', from_json(get_json_object(record, '$.bibIds'), 'array<string>'),
      'unlinked_bib_ids', from_json(get_json_object(record, '$.unlinkedBibIds'), 'array<string>')
    )
  ))) AS order_records,
  updatedDate AS modified_time,
  deleted
FROM input
