export { AnnotationLegend } from './AnnotationLegend'
export { AnnotationMarks } from './AnnotationMarks'
export { annotationsIn } from './marks'
export { type Annotations, useAnnotations } from './query'
