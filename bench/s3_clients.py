"""How fast other people's S3 clients read; runs in the peers' environment.

usage: s3_clients.py CLIENT ENDPOINT OBJECT_BYTES THREADS SECONDS
CLIENT is `s3torchconnector` (the client below it) or `s3dlio`. Prints one line of JSON.
"""

import json
import resource
import sys
import threading
import time

OBJECTS = 8
BUCKET = "bucket"


def torch_client(endpoint):
    """Puts and gets of s3torchconnector's client."""
    from s3torchconnectorclient._mountpoint_s3_client import MountpointS3Client

    client = MountpointS3Client(
        region="us-east-1", user_agent_prefix="bench", endpoint=endpoint, force_path_style=True,
    )

    def put(key, data):
        stream = client.put_object(BUCKET, key)
        stream.write(data)
        stream.close()

    return put, lambda key: sum(map(len, client.get_object(BUCKET, key)))


def s3dlio_client(_endpoint):
    """Puts and gets of s3dlio, which takes the endpoint from the environment."""
    import s3dlio

    return None, lambda key: len(s3dlio.get(f"s3://{BUCKET}/{key}"))


def main(argv):
    """Puts the objects, gets them for a while on all threads."""
    name, endpoint, size, threads, seconds = argv
    get = {"s3torchconnector": torch_client, "s3dlio": s3dlio_client}[name](endpoint)[1]
    torch_put = torch_client(endpoint)[0]
    for number in range(OBJECTS):
        torch_put(f"peer/{number}", b"x" * int(size))
    moved = [0] * int(threads)
    begin, cpu = time.monotonic(), time.process_time()

    def work(thread):
        number = thread
        while time.monotonic() - begin < float(seconds):
            moved[thread] += get(f"peer/{number % OBJECTS}")
            number += 1

    running = [threading.Thread(target=work, args=(thread,)) for thread in range(int(threads))]
    [thread.start() for thread in running]
    [thread.join() for thread in running]
    gib = sum(moved) / (1 << 30)
    print(json.dumps({
        "gib_per_s": gib / (time.monotonic() - begin),
        "cpu_s_per_gib": (time.process_time() - cpu) / gib,
        "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }))


if __name__ == "__main__":
    main(sys.argv[1:])
