package model

// Defects are mistakes that can be planted. The zero value has none.
type Defects struct {
	// TerminateByID terminates whatever is open under the ID, not the run that was seen.
	TerminateByID bool
	// DeleteWithoutCompare deletes, ResignWithoutToken resigns and RenewWithoutToken renews whatever entry is there.
	DeleteWithoutCompare, ResignWithoutToken, RenewWithoutToken bool
	// ClaimWithoutFence lets anybody claim.
	ClaimWithoutFence bool
	// EpochFromLeases takes epochs from the store of leases, which may lose them.
	EpochFromLeases bool
	// AdoptWithoutEpoch lets a dispatcher be adopted by anybody.
	AdoptWithoutEpoch bool
	// AdoptInterrupted adopts although somebody was given an epoch since the dispatcher's, who may be about to terminate it.
	AdoptInterrupted bool
	// StartReplaces starts with a policy by which what is open is terminated.
	StartReplaces bool
	// IDsWithServer names dispatchers after who starts them.
	IDsWithServer bool
	// ActUnrenewed acts without renewing the lease after the epoch was handed out.
	ActUnrenewed bool
	// DecideOnOldEpoch terminates under the epoch under which an adoption of the same run may still be on its way.
	DecideOnOldEpoch bool
	// Unsupervised leaves the supervisor out, which makes the world a small one.
	Unsupervised bool
	// DeafOwner does not notice that somebody was given an epoch after it.
	DeafOwner bool
	// Unguarded has the supervisor terminate without taking the lease first.
	Unguarded bool
	// LeaseIgnored has the supervisor go by something else than the lease, as by a heartbeat.
	LeaseIgnored bool
}
