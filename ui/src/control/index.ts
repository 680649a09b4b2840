export { ControlDialog } from './ControlDialog'
export { type Control, controlWords, noteOf, refusalOf, stateText } from './controls'
