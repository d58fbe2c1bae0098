"""Tables and their changes, read in this process: no Spark, no Java. PyIceberg opens catalogs and stores."""
