package store

// TablesOfRuns is tablesOfRuns, for the test that compares it with the schema.
var TablesOfRuns = tablesOfRuns

// Starting returns the number of starts that wait or are being committed.
func (s *Store) Starting() int { return s.starts.Waiting() }
