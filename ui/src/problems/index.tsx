export { ProblemsPage } from './ProblemsPage'
