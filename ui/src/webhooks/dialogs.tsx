import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { clients } from '../api'
import type { WebhookDelivery } from '../gen/signalbox/v1/webhook_pb'
import { ActionDialog, command, restCall, Select, toast } from '../kit'
import { webhooksKey } from './words'

interface Props {
  project: string
  name: string
  onClose: () => void
}

/** useRenew returns a function that reads all webhooks of a project again. */
function useRenew(project: string): () => void {
  const queries = useQueryClient()
  return () => {
    void queries.invalidateQueries({ queryKey: webhooksKey(project) })
  }
}

export function PauseDialog({ project, name, onClose }: Props) {
  const renew = useRenew(project)
  return (
    <ActionDialog
      title={`Pause ${name}`}
      description="Events that are accepted while it is paused are not delivered, also not later. Unfinished deliveries wait."
      action="Pause"
      reason="optional"
      run={(reason) => clients.webhooks.pauseWebhook({ project, name, reason })}
      cli={(reason) => command(['webhook', 'pause', name], { project, reason })}
      rest={(reason) => restCall('POST', '/v1/projects/{project}/webhooks/{name}:pause', { project, name, reason })}
      onDone={() => {
        toast(`${name} is paused.`)
        renew()
        onClose()
      }}
      onClose={onClose}
    />
  )
}

export function DeleteDialog({ project, name, onDone, onClose }: Props & { onDone: () => void }) {
  const renew = useRenew(project)
  return (
    <ActionDialog
      title={`Delete ${name}`}
      description="Its deliveries are deleted, too, also those that are not finished. It cannot be undone."
      action="Delete"
      danger
      reason="none"
      run={() => clients.webhooks.deleteWebhook({ project, name })}
      cli={() => command(['webhook', 'delete', name], { project })}
      rest={() => restCall('DELETE', '/v1/projects/{project}/webhooks/{name}', { project, name })}
      onDone={() => {
        toast(`Deleted ${name}.`)
        onDone()
        renew()
      }}
      onClose={onClose}
    />
  )
}

const keeps = [
  { value: '0', label: 'It ends at once' },
  { value: '1', label: 'An hour' },
  { value: '24', label: 'A day' },
  { value: '168', label: '7 days' },
  { value: '720', label: '30 days' },
]

/** Replaces the secret; `onDone` receives the new one. */
export function RotateDialog({ project, name, onDone, onClose }: Props & { onDone: (secret: string) => void }) {
  const [keep, setKeep] = useState('24')
  const renew = useRenew(project)
  return (
    <ActionDialog
      title={`Rotate the secret of ${name}`}
      description="Requests are signed with the new secret at once, and with the previous one as long as that is valid."
      action="Rotate"
      reason="none"
      run={() =>
        clients.webhooks.rotateWebhookSecret({
          project,
          name,
          keepPrevious: { seconds: BigInt(keep) * 3600n, nanos: 0 },
        })
      }
      cli={() => command(['webhook', 'rotate-secret', name], { project, keep: `${keep}h` })}
      rest={() =>
        restCall('POST', '/v1/projects/{project}/webhooks/{name}:rotate-secret', {
          project,
          name,
          keepPrevious: `${Number(keep) * 3600}s`,
        })
      }
      onDone={({ secret }) => {
        renew()
        onDone(secret)
      }}
      onClose={onClose}
    >
      <Select
        label="The previous secret stays valid"
        value={keep}
        onChange={(e) => setKeep(e.target.value)}
        options={keeps}
      />
    </ActionDialog>
  )
}

export function RedeliverDialog({
  project,
  delivery,
  onClose,
}: {
  project: string
  delivery: WebhookDelivery
  onClose: () => void
}) {
  const renew = useRenew(project)
  return (
    <ActionDialog
      title={`Redeliver ${delivery.eventType}`}
      description={`${delivery.status === 'delivered' ? 'The receiver has accepted it before. ' : ''}It is sent at once with the same webhook-id, by which receivers ignore what they have processed.`}
      action="Redeliver"
      reason="optional"
      run={(reason) => clients.webhooks.redeliverWebhookDelivery({ project, id: delivery.id, reason })}
      cli={(reason) => command(['webhook', 'redeliver', delivery.id], { project, reason })}
      rest={(reason) =>
        restCall('POST', '/v1/projects/{project}/webhook-deliveries/{id}:redeliver', {
          project,
          id: delivery.id,
          reason,
        })
      }
      onDone={() => {
        toast('The delivery is due at once.')
        renew()
        onClose()
      }}
      onClose={onClose}
    />
  )
}
