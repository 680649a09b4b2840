package store

// TablesOfRuns is tablesOfRuns, for the test that compares it with the schema.
var TablesOfRuns = tablesOfRuns

// Starting returns the number of starts that wait or are being committed.
func (s *Store) Starting() int { return s.starts.Waiting() }

// HandingOver returns the number of runs that are to be marked as handed over.
func (s *Store) HandingOver() int { return s.handOvers.Waiting() }
