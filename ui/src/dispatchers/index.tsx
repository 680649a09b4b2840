export function DispatchersPage() { return null }
export function DispatcherPage() { return null }
