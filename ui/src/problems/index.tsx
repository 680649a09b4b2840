export function ProblemsPage() { return null }
