// Package verdict judges whether one run is stuck, and why, by what is known of it: its row, the connection, the pollers of its
// task queue and, where those do not answer, its execution. The judgement can be tested over all that may be known, without
// any of it being there.
//
//	since, due := verdict.Due(row, now, after)
//	switch d := verdict.Of(facts); d.Action {
//	case verdict.Ask: // describe the execution, and judge again
//	}
//
// Facts come in stages, the cheap ones first: one answer about a queue judges all runs that wait for it. It asks nobody and
// changes nothing.
package verdict
