export function BatchesPage() { return null }
export function BatchPage() { return null }
