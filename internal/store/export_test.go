package store

// TablesOfRuns is tablesOfRuns, for the test that compares it with the schema.
var TablesOfRuns = tablesOfRuns
