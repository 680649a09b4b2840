import { lazy, Suspense } from 'react'
import type { StartDialogProps } from './StartDialog'

const Loaded = lazy(() => import('./StartDialog'))

/** The dialog that starts a run; loaded when it is first opened. */
export function StartDialog(props: StartDialogProps) {
  return (
    <Suspense>
      <Loaded {...props} />
    </Suspense>
  )
}
