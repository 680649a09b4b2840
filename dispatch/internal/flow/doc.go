// Package flow is the dispatcher as Temporal runs it: a workflow that keeps who owns it and who works for it, and activities that do
// the rest.
//
// The workflow starts one long activity that routes. When that finds nothing to do for a while, the workflow is parked: it has
// no timer and no activity, and waits for its doorbell, an adoption or a registration. Nothing is lost with it: what is to be
// delivered is in the inbox, and whoever terminates it and starts another loses the list of workers at most.
//
// An adoption does not cancel the routing of the owner before. It starts another one at once, and the inbox refuses
// the claims of the old one, which ends by that.
package flow
