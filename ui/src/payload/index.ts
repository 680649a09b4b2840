export { JsonView } from './JsonView'
