import { Link } from '@tanstack/react-router'
import { milliseconds, useConnection, usePlatformProblems } from '../api'
import { type Alert, AlertSlot, Since } from '../kit'

/** What keeps runs of the project from going on: the connection to Temporal, the dispatcher, the workers; for every role. */
export function PlatformAlerts({ project }: { project: string }) {
  const { data: connection } = useConnection()
  const problems = usePlatformProblems(project)
  const alerts: Alert[] = []
  if (connection !== undefined && connection.title !== '') {
    const down = connection.state === 'down'
    alerts.push({
      id: 'engine',
      tone: down ? 'red' : 'amber',
      title: connection.title,
      since: <Since at={milliseconds(connection.since)} />,
      detail: down
        ? `The runs show what was known before. New runs are ${connection.queuesRuns ? 'queued until Temporal is available again' : 'refused'}.`
        : undefined,
    })
  }
  if (connection !== undefined && connection.mismatch !== '') {
    alerts.push({
      id: 'mismatch',
      tone: 'red',
      title: connection.mismatch,
      detail: 'The runs go on there. New runs are refused here.',
      actions: <Link to="/system">System</Link>,
    })
  }
  for (const problem of problems.data?.problems ?? []) {
    alerts.push({
      id: problem.id,
      tone: 'amber',
      title: problem.title,
      since: <Since at={milliseconds(problem.firstTime)} />,
      detail: problem.detail,
      actions: <Link to="/problems">Problems</Link>,
    })
  }
  return <AlertSlot alerts={alerts} />
}
