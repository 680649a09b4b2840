export { LicencesPage } from './LicencesPage'
export { RestorePage } from './RestorePage'
export { SystemPage } from './SystemPage'
