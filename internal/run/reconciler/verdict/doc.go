// Package verdict judges one run by what its row and Temporal say of it, so that the judgement can be tested over all
// that both may say, without either.
//
//	switch verdict.Of(verdict.Facts{Now: now, StartTimeout: limit, Row: &row, Listed: listed}) {
//	case verdict.Look: // ask Temporal, and judge again with its answer
//	}
//
// Facts come in stages: with more known of a run, the verdict is another one. Whether a run that Temporal does not know is
// lost depends on whether this is the Temporal that the runs are in, which package home tells.
//
// It asks nobody and changes nothing.
package verdict
