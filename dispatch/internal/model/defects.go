package model

// Defects are mistakes that can be planted in the model. The zero value has none.
type Defects struct {
	// TerminateByID terminates the open run of the ID instead of the run that was observed.
	TerminateByID bool
	// DeleteWithoutCompare deletes, ResignWithoutToken resigns and RenewWithoutToken renews any entry that exists.
	DeleteWithoutCompare, ResignWithoutToken, RenewWithoutToken bool
	// ClaimWithoutFence accepts claims of any owner.
	ClaimWithoutFence bool
	// EpochFromLeases allocates epochs in the lease store, which may lose them.
	EpochFromLeases bool
	// AdoptWithoutEpoch accepts adoptions with any epoch.
	AdoptWithoutEpoch bool
	// AdoptInterrupted adopts although an epoch was allocated after the dispatcher's, whose owner may be about to
	// terminate it.
	AdoptInterrupted bool
	// ExcuseUnclaimed treats the expired lease of a process without an epoch as that of a living owner.
	ExcuseUnclaimed bool
	// StartReplaces starts with a policy that terminates an open run.
	StartReplaces bool
	// IDsWithServer has the server ID in workflow IDs.
	IDsWithServer bool
	// ActUnrenewed acts without renewing the lease after the epoch was allocated.
	ActUnrenewed bool
	// DecideOnOldEpoch terminates under an epoch with which an adoption of the same run may still arrive.
	DecideOnOldEpoch bool
	// Unsupervised has no supervisor, which makes the state space small.
	Unsupervised bool
	// IgnoreLaterEpoch does not notice that a later epoch was allocated.
	IgnoreLaterEpoch bool
	// Unguarded makes the supervisor terminate without acquiring the lease first.
	Unguarded bool
	// LeaseIgnored makes the supervisor ignore a held lease, as if it judged by heartbeats.
	LeaseIgnored bool
}
