import { BatchDialog } from './BatchDialog'
import { noFilter } from './filter'

/** Replays the runs of a failure group that have no replay. */
export function ReplayGroup({ project, group, onClose }: { project: string; group: string; onClose: () => void }) {
  return (
    <BatchDialog
      project={project}
      action="replay"
      selected={[]}
      filter={{ ...noFilter, failureGroup: group, notReplayed: true }}
      onClose={onClose}
    />
  )
}
