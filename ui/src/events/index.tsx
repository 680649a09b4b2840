export { EventPage } from './EventPage'
export { EventsPage } from './EventsPage'
