export {
  givenLabels,
  type Label,
  labelList,
  labelParameter,
  labelProblem,
  type LabelRow,
  labelsRefusal,
  labelText,
  readLabel,
  readParameter,
} from './label'
export { LabelChips } from './LabelChips'
export { LabelEditor } from './LabelEditor'
