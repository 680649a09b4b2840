export function EventsPage() { return null }
export function EventPage() { return null }
