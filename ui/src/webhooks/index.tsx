export { DeliveryPage } from './DeliveryPage'
export { WebhookPage } from './WebhookPage'
export { WebhooksPage } from './WebhooksPage'
