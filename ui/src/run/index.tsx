export function RunPage() { return null }
export function ComparePage() { return null }
