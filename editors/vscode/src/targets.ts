// Shows a page with the resources that a function uses on each target.

import { Pages } from './explain';
import { notInside, SassView } from './sass';
import { Server } from './server';

export async function compareTargets(server: Server, view: SassView, pages: Pages): Promise<void> {
    if (!server.client) {
        server.missing();
        return;
    }
    const place = view.place();
    const answer = place && await server.client.sendRequest<{ function: string; markdown: string } | null>('ptx/compareTargets', {
        textDocument: { uri: place.source.toString() },
        ...place.place,
    });
    if (answer) {
        await pages.show(answer.function, answer.markdown);
    } else {
        notInside();
    }
}
