// Package dispatcherflow is the dispatcher's Temporal workflow and its activities. The workflow stores the owner and
// the workers; activities do the rest.
//
// The workflow runs one long activity, which routes. When the activity finds no work for a while, the workflow is
// parked: it has no timer and no activity, and waits for a doorbell, an adoption or a registration. Terminating it
// loses no deliveries, which are in the inbox, but only the list of workers.
//
// An adoption does not cancel the routing of the previous owner. It starts a second routing at once; the inbox rejects
// the claims of the old one, which then ends.
package dispatcherflow
